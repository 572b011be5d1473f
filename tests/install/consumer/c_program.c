/* Calls every function of the C ABI, from C. Prints the first error. */
#include <stdio.h>
#include <stdlib.h>
#include <strata.h>
#include <string.h>

#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "line %d: %s (last error: %s)\n", __LINE__, #condition, \
              strata_last_error());                                           \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static const strata_place kDevice = {STRATA_DEVICE, 0};
static const strata_place kHost = {STRATA_HOST, 0};

static void memory(strata_facade* facade) {
  void* pointer = NULL;
  void* aligned = NULL;
  size_t bytes = 0;
  EXPECT(strata_alloc(facade, kDevice, 1000, NULL, &pointer) == STRATA_OK);
  EXPECT(pointer != NULL);
  EXPECT(strata_alloc_aligned(facade, kDevice, 1000, 1 << 16, NULL, &aligned) ==
         STRATA_OK);
  EXPECT((uintptr_t)aligned % (1 << 16) == 0);
  EXPECT(strata_free(facade, aligned) == STRATA_OK);
  EXPECT(strata_free(facade, pointer) == STRATA_OK);
  EXPECT(strata_free(facade, pointer) == STRATA_UNKNOWN_POINTER);
  EXPECT(strstr(strata_last_error(), "0x") != NULL);
  EXPECT(strata_free(facade, NULL) == STRATA_OK);
  EXPECT(strata_release(facade, kDevice, &bytes) == STRATA_OK);
  EXPECT(bytes > 0);

  EXPECT(strata_alloc(facade, kHost, 64, NULL, &pointer) == STRATA_OK);
  memset(pointer, 1, 64);
  EXPECT(strata_free(facade, pointer) == STRATA_OK);
}

static void streams(strata_facade* facade) {
  void* stream = NULL;
  void* other = NULL;
  void* pointer = NULL;
  EXPECT(strata_stream_create(facade, 0, &stream) == STRATA_OK);
  EXPECT(strata_stream_create(facade, 0, &other) == STRATA_OK);
  EXPECT(strata_alloc(facade, kDevice, 4096, stream, &pointer) == STRATA_OK);
  EXPECT(strata_record_stream(facade, pointer, other) == STRATA_OK);
  EXPECT(strata_erase_stream(facade, pointer, other) == STRATA_OK);
  EXPECT(strata_free_on(facade, pointer, other) == STRATA_OK);
  EXPECT(strata_stream_destroyed(facade, 0, other) == STRATA_OK);
  EXPECT(strata_stream_destroy(facade, 0, other) == STRATA_OK);
  EXPECT(strata_stream_destroy(facade, 0, other) == STRATA_INVALID_ARGUMENT);
  EXPECT(strata_stream_destroy(facade, 0, stream) == STRATA_OK);
}

static void count_message(void* context, int32_t severity, const char* file,
                          int32_t line, const char* message) {
  EXPECT(severity == STRATA_LOG_WARNING || severity == STRATA_LOG_ERROR);
  EXPECT(strstr(file, ".cc") != NULL && line > 0 && strlen(message) > 0);
  ++*(int*)context;
}

/* The first use of an option that is gone makes a message. */
static void messages(void) {
  strata_facade* facade = NULL;
  int count = 0;
  EXPECT(strata_set_log_callback(&count_message, &count) == STRATA_OK);
  EXPECT(strata_create("strata_platform=sim,auto_growth_step_plan=true",
                       &facade) == STRATA_OK);
  EXPECT(strata_set_log_callback(NULL, NULL) == STRATA_OK);
  EXPECT(strata_destroy(facade) == STRATA_OK);
  EXPECT(count == 1);
}

static void statistics(strata_facade* facade) {
  size_t needed = 0;
  char* text = NULL;
  EXPECT(strata_stats_json(facade, NULL, 0, &needed) == STRATA_SHORT_BUFFER);
  EXPECT((text = malloc(needed)) != NULL);
  EXPECT(strata_stats_json(facade, text, needed, NULL) == STRATA_OK);
  EXPECT(strlen(text) + 1 == needed);
  EXPECT(strstr(text, "\"device:0\":{\"allocations\":3,") != NULL);
  free(text);
}

int main(void) {
  strata_facade* facade = NULL;
  void* pointer = NULL;
  EXPECT(strcmp(strata_version(), "0.1.0") == 0);
  EXPECT(strcmp(strata_last_error(), "") == 0);
  EXPECT(strata_create("no_such_option=1", &facade) == STRATA_INVALID_ARGUMENT);
  EXPECT(strstr(strata_last_error(), "no_such_option") != NULL);
  EXPECT(strata_create("strata_platform=sim,strata_sim_memory=64MiB",
                       &facade) == STRATA_OK);
  EXPECT(strata_alloc(facade, kDevice, (size_t)1 << 30, NULL, &pointer) ==
         STRATA_OUT_OF_MEMORY);
  messages();
  memory(facade);
  streams(facade);
  statistics(facade);
  EXPECT(strata_alloc(facade, kDevice, 1, NULL, &pointer) == STRATA_OK);
  EXPECT(strata_destroy(facade) == STRATA_LIVE_POINTERS);
  EXPECT(strata_destroy(NULL) == STRATA_OK);
  puts(strata_version());
  return 0;
}
