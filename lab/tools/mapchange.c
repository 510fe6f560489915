/* mapchange CONFIG MILLISECONDS: changes the guest's memory map repeatedly for that time, and prints how often.
 *
 * CONFIG is the `config` file of a PCI function in sysfs to which no driver is bound. Its memory decode is switched off and
 * on, as a driver does when it loads. Meanwhile a thread on every CPU sleeps a millisecond at a time, so that each CPU writes
 * to its local APIC often: an old QEMU loses some of these writes (lab/README.md).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COMMAND 4
#define MEMORY_DECODE 2

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000L + t.tv_nsec / 1000000;
}

static void *sleeper(void *arg)
{
	struct timespec millisecond = { 0, 1000000 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((long)arg, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		return NULL; /* this CPU is offline */
	for (;;)
		nanosleep(&millisecond, NULL);
}

int main(int argc, char **argv)
{
	uint16_t was, now;
	long end, changes = 0;
	int fd;

	if (argc != 3 || atol(argv[2]) <= 0 || atol(argv[2]) > 600000) {
		fprintf(stderr, "usage: mapchange CONFIG MILLISECONDS\n");
		return 2;
	}
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (fd < 0 || pread(fd, &was, 2, COMMAND) != 2) {
		fprintf(stderr, "mapchange: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	for (long c = 0; c < sysconf(_SC_NPROCESSORS_CONF); c++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, sleeper, (void *)c) != 0) {
			fprintf(stderr, "mapchange: CPU %ld: no thread\n", c);
			return 1;
		}
	}
	now = was | MEMORY_DECODE;
	for (end = now_ms() + atol(argv[2]); now_ms() < end; changes++) {
		now ^= MEMORY_DECODE;
		if (pwrite(fd, &now, 2, COMMAND) != 2) {
			fprintf(stderr, "mapchange: %s: %s\n", argv[1], strerror(errno));
			return 1;
		}
	}
	if (pwrite(fd, &was, 2, COMMAND) != 2) {
		fprintf(stderr, "mapchange: restore: %s\n", strerror(errno));
		return 1;
	}
	printf("%ld\n", changes);
	return 0;
}
