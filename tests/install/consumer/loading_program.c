/* Loads the shared library at run time, as a plug-in or a script does, and
   finds its functions by name. For each platform in the arguments it creates a
   facade and an allocation, or prints the reason for a failure. `sim` must
   succeed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <strata/facade/strata.h>  // an earlier path of <strata.h>
#include <string.h>

#define EXPECT(condition)                                     \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      exit(1);                                                \
    }                                                         \
  } while (0)

static struct {
  const char* (*version)(void);
  const char* (*last_error)(void);
  strata_status (*create)(const char*, strata_facade**);
  strata_status (*alloc)(strata_facade*, strata_place, size_t, void*, void**);
  strata_status (*free)(strata_facade*, void*);
  strata_status (*destroy)(strata_facade*);
} strata;

/* Sets `function`, a pointer to a pointer to a function. */
static void find(void* library, const char* name, void* function) {
  void* symbol = dlsym(library, name);
  EXPECT(symbol != NULL);
  memcpy(function, &symbol, sizeof symbol);
}

static void load(void) {
  void* library = dlopen(STRATA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  find(library, "strata_version", &strata.version);
  find(library, "strata_last_error", &strata.last_error);
  find(library, "strata_create", &strata.create);
  find(library, "strata_alloc", &strata.alloc);
  find(library, "strata_free", &strata.free);
  find(library, "strata_destroy", &strata.destroy);
}

static void use(const char* platform) {
  const strata_place device = {STRATA_DEVICE, 0};
  strata_facade* facade = NULL;
  void* pointer = NULL;
  char options[64];
  snprintf(options, sizeof options, "strata_platform=%s", platform);
  if (strata.create(options, &facade) != STRATA_OK) {
    printf("%s is refused: %s\n", platform, strata.last_error());
    EXPECT(strcmp(platform, "sim") != 0);
    return;
  }
  EXPECT(strata.alloc(facade, device, 1000, NULL, &pointer) == STRATA_OK);
  EXPECT(strata.free(facade, pointer) == STRATA_OK);
  EXPECT(strata.destroy(facade) == STRATA_OK);
  printf("%s is used\n", platform);
}

int main(int argc, char** argv) {
  load();
  EXPECT(strcmp(strata.version(), "0.1.0") == 0);
  for (int i = 1; i < argc; ++i) use(argv[i]);
  return 0;
}
