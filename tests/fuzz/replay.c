/* SPDX-License-Identifier: MIT */
/* Replays a corpus through a fuzz target: each argument is a file or a folder of files. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return -1;
	fseek(f, 0, SEEK_END);
	long size = ftell(f);
	rewind(f);
	/* Exactly as long as the input, so that ASan sees a read past its end. */
	uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
	size_t n = data ? fread(data, 1, (size_t)size, f) : 0;
	fclose(f);
	LLVMFuzzerTestOneInput(data, n);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned count = 0;
	for (int i = 1; i < argc; i++) {
		DIR *d = opendir(argv[i]);
		if (!d) {
			count += replay_file(argv[i]) == 0;
			continue;
		}
		const struct dirent *e;
		while ((e = readdir(d))) {
			char path[4096];
			snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			struct stat st;
			if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
				count += replay_file(path) == 0;
		}
		closedir(d);
	}
	printf("%u inputs\n", count);
	return count == 0;
}
