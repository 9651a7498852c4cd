/* Coverage of the C libraries. gcc tells each block that is entered by calling __sanitizer_cov_trace_pc, which libFuzzer no longer
 * supports (the build has the linker put the function below in its place); it does know counters in a section of this name. A block
 * has the counter at the hash of its place, counted from the counters themselves, so that it is the same in every process. */
#include <stdint.h>

#define COUNTERS 65536

__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[COUNTERS];

__attribute__((no_sanitize_coverage, no_sanitize("address"))) void __wrap___sanitizer_cov_trace_pc(void) {
  uint64_t place = (uintptr_t)__builtin_return_address(0) - (uintptr_t)counters;
  uint8_t *counter = &counters[(place * 0x9E3779B97F4A7C15u) >> 48];
  if (*counter != UINT8_MAX) ++*counter;
}

/* Comparisons of floats, which gcc tells and libFuzzer does not know. */
__attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_cmpf(float a, float b) { (void)a, (void)b; }
__attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_cmpd(double a, double b) { (void)a, (void)b; }
