/* Loads the shared library at run time, uses it and unloads it, many times. The
   program has no C++ library, so the loader loads that one as a part of Strata.
   After dlclose Strata is not loaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <strata.h>
#include <string.h>

#define EXPECT(condition)                                     \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      exit(1);                                                \
    }                                                         \
  } while (0)

/* Sets `function`, a pointer to a pointer to a function. */
static void find(void* library, const char* name, void* function) {
  void* symbol = dlsym(library, name);
  EXPECT(symbol != NULL);
  memcpy(function, &symbol, sizeof symbol);
}

static void use(void* library) {
  strata_status (*create)(const char*, strata_facade**);
  strata_status (*alloc)(strata_facade*, strata_place, size_t, void*, void**);
  strata_status (*release)(strata_facade*, void*);
  strata_status (*destroy)(strata_facade*);
  const strata_place device = {STRATA_DEVICE, 0};
  strata_facade* facade = NULL;
  void* pointer = NULL;
  find(library, "strata_create", &create);
  find(library, "strata_alloc", &alloc);
  find(library, "strata_free", &release);
  find(library, "strata_destroy", &destroy);
  EXPECT(create("no_such_option=1", &facade) == STRATA_INVALID_ARGUMENT);
  EXPECT(create("strata_platform=sim", &facade) == STRATA_OK);
  EXPECT(alloc(facade, device, 1000, NULL, &pointer) == STRATA_OK);
  EXPECT(release(facade, pointer) == STRATA_OK);
  EXPECT(destroy(facade) == STRATA_OK);
}

int main(void) {
  for (int round = 0; round < 20; ++round) {
    void* library = dlopen(STRATA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    EXPECT(library != NULL);
    if (round > 0) use(library);  // the first round makes no call
    EXPECT(dlclose(library) == 0);
    EXPECT(dlopen(STRATA_LIBRARY, RTLD_NOW | RTLD_NOLOAD) == NULL);
  }
  return 0;
}
