#include <strata.h>

int main(void) { return strata_version() ? 0 : 1; }
