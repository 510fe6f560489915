/* killat [-b] RECORD:N PREFIX COMMAND...: runs COMMAND, and kills it when it has written the Nth record of that kind into
 * a file whose name begins with PREFIX. With -b: just before that record is written.
 *
 *     killat step:3 tx- ringwise apply eth0      SIGKILL between the third step's line in the journal and its write
 *
 * A record is a write(2) that begins with {"record":"RECORD". The command and its threads are traced, its children are not.
 * The exit status is that of the command, or 137 if it was killed. If the point is never reached, a line on stderr reports it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char wanted[80];
static const char *prefix;
static long left; /* remaining records of that kind */
static int before;

static void fail(const char *what)
{
	fprintf(stderr, "killat: %s: %s\n", what, strerror(errno));
	exit(125);
}

/* Whether this write is the Nth record. `fd` and `buf` are those of the traced thread. */
static int is_point(pid_t tid, unsigned long long fd, unsigned long long buf, unsigned long long length)
{
	char link[64], path[PATH_MAX], text[sizeof(wanted)];
	struct iovec here = { text, strlen(wanted) }, there = { (void *)(unsigned long)buf, strlen(wanted) };
	const char *name;
	ssize_t n;

	if (length < strlen(wanted))
		return 0;
	snprintf(link, sizeof(link), "/proc/%d/fd/%llu", tid, fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return 0;
	path[n] = 0;
	name = strrchr(path, '/');
	if (name == NULL || strncmp(name + 1, prefix, strlen(prefix)) != 0)
		return 0;
	if (process_vm_readv(tid, &here, 1, &there, 1, 0) != (ssize_t)strlen(wanted))
		return 0;
	return memcmp(text, wanted, strlen(wanted)) == 0 && --left == 0;
}

/* A thread has stopped before or after a system call. Returns whether the point is reached. */
static int at_call(pid_t tid, pid_t *writer)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof(info), &info) <= 0)
		return 0;
	if (info.op == PTRACE_SYSCALL_INFO_EXIT && *writer == tid) {
		if (!info.exit.is_error)
			return 1;
		/* Not written: the next attempt counts instead. */
		*writer = 0;
		left = 1;
	}
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_write && left > 0 &&
	    is_point(tid, info.entry.args[0], info.entry.args[1], info.entry.args[2])) {
		*writer = tid;
		return before;
	}
	return 0;
}

/* Waits until the command has ended, and returns its status. */
static int follow(pid_t command)
{
	pid_t writer = 0;
	int met = 0;

	for (;;) {
		int status, event, sig;
		pid_t tid = waitpid(-1, &status, __WALL);

		if (tid < 0)
			fail("waitpid");
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (tid != command)
				continue;
			if (!met)
				fprintf(stderr, "killat: %s was never written\n", wanted);
			return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		}
		event = status >> 16;
		sig = WSTOPSIG(status);
		if (sig == (SIGTRAP | 0x80)) {
			if (!met && at_call(tid, &writer)) {
				met = 1;
				kill(command, SIGKILL);
				continue;
			}
			sig = 0;
		} else if (event == PTRACE_EVENT_STOP && (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU)) {
			/* The process is stopped as a whole, and stays so until SIGCONT. */
			ptrace(PTRACE_LISTEN, tid, 0, 0);
			continue;
		} else if (event != 0) {
			sig = 0;
		}
		/* waitpid reports a thread that was killed in the meantime. */
		ptrace(PTRACE_SYSCALL, tid, 0, (void *)(long)sig);
	}
}

int main(int argc, char **argv)
{
	int go[2], status;
	char *colon;
	pid_t command;

	if (argc > 1 && strcmp(argv[1], "-b") == 0) {
		before = 1;
		argv++;
		argc--;
	}
	colon = argc > 3 ? strchr(argv[1], ':') : NULL;
	left = colon ? atol(colon + 1) : 0;
	if (left < 1 || colon - argv[1] > 40) {
		fprintf(stderr, "usage: killat [-b] RECORD:N PREFIX COMMAND...\n");
		return 125;
	}
	snprintf(wanted, sizeof(wanted), "{\"record\":\"%.*s\"", (int)(colon - argv[1]), argv[1]);
	prefix = argv[2];
	if (pipe2(go, O_CLOEXEC) != 0)
		fail("pipe");
	command = fork();
	if (command < 0)
		fail("fork");
	if (command == 0) {
		char c;

		/* The command must not start before it is traced. */
		if (read(go[0], &c, 1) == 1)
			execvp(argv[3], argv + 3);
		fprintf(stderr, "killat: %s: %s\n", argv[3], strerror(errno));
		_exit(127);
	}
	/* Threads are created by clone; the guard and other children by fork and vfork, and are not traced. */
	if (ptrace(PTRACE_SEIZE, command, 0, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL)) != 0)
		fail("ptrace");
	if (ptrace(PTRACE_INTERRUPT, command, 0, 0) != 0 || waitpid(command, &status, __WALL) != command)
		fail("ptrace");
	ptrace(PTRACE_SYSCALL, command, 0, 0);
	if (write(go[1], "", 1) != 1)
		fail("pipe");
	close(go[1]);
	return follow(command);
}
