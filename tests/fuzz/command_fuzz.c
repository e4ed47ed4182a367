/* SPDX-License-Identifier: MIT */
#include "fuzz/driver_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_driver("command", data, size);
}
