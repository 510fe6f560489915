// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * state: prints the settings of a device that ringwise may change, read without ringwise and without ethtool.
 *
 *   state DEV...               channels, rings, moderation, RSS table and key, the CPUs of each interrupt, RPS, RFS and XPS of
 *                              each queue; then the size of the host's RFS table
 *   state irqs DEV             the numbers of its interrupts, in order
 *   state queue-irq DEV NAME   the number of the interrupt whose name ends in NAME
 *   state affinity DEV...      `irq NAME=CPUS` of each interrupt that has a handler
 *   state links DEV...         waits up to ten seconds for the link of each
 *   state settled DEV...       waits up to a minute until each queue's interrupt is raised on an allowed CPU, and on no other
 *
 * Scenarios compare two such states. A shell script would start some hundred processes to read the same, and each takes
 * milliseconds in an emulated guest. Interrupts are identified by name, because a channel change gives them new numbers.
 * Values are written as ethtool 6.1 writes them, with `n/a` for values that the driver does not have.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- files --- */

/* Reads the first line without blanks around it. If the file cannot be read, the line is empty and the result is -1. */
static int first_line(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "r");
	char *from = line, *end;

	*line = 0;
	if (!f)
		return -1;
	if (!fgets(line, size, f))
		*line = 0;
	fclose(f);
	from += strspn(from, " \t\n");
	end = from + strlen(from);
	while (end > from && strchr(" \t\n", end[-1]))
		*--end = 0;
	memmove(line, from, end - from + 1);
	return *line ? 0 : -1;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* The interrupts of a device; a virtio device has them at its PCI function, one directory up. */
static int vectors(const char *dev, int *numbers, int room)
{
	char path[PATH_MAX];
	struct dirent *e;
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/msi_irqs", dev);
	d = opendir(path);
	if (!d) {
		snprintf(path, sizeof(path), "/sys/class/net/%s/device/../msi_irqs", dev);
		d = opendir(path);
	}
	if (!d)
		return 0;
	while ((e = readdir(d)) && n < room)
		if (*e->d_name != '.')
			numbers[n++] = atoi(e->d_name);
	closedir(d);
	qsort(numbers, n, sizeof(*numbers), by_number);
	return n;
}

#define MOST	1024

static void action(int irq, char *name, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/kernel/irq/%d/actions", irq);
	first_line(path, name, size);
}

static void irq_file(int irq, const char *file, char *value, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/irq/%d/%s", irq, file);
	first_line(path, value, size);
}

static void affinity(const char *dev)
{
	int numbers[MOST], n = vectors(dev, numbers, MOST), i;
	char name[512], cpus[512];

	for (i = 0; i < n; i++) {
		action(numbers[i], name, sizeof(name));
		if (!*name)
			continue;
		irq_file(numbers[i], "smp_affinity_list", cpus, sizeof(cpus));
		printf("irq %s=%s\n", name, cpus);
	}
}

static void queues(const char *dev)
{
	static const char *const files[] = { "rps_cpus", "rps_flow_cnt", "xps_cpus", "xps_rxqs" };
	char pattern[PATH_MAX], value[2048];
	const size_t base = strlen("/sys/class/net/");
	size_t i, k;

	for (k = 0; k < sizeof(files) / sizeof(*files); k++) {
		glob_t found;

		snprintf(pattern, sizeof(pattern), "/sys/class/net/%s/queues/*/%s", dev, files[k]);
		if (glob(pattern, 0, NULL, &found))
			continue;
		for (i = 0; i < found.gl_pathc; i++) {
			first_line(found.gl_pathv[i], value, sizeof(value));
			printf("%s=%s\n", found.gl_pathv[i] + base, value);
		}
		globfree(&found);
	}
}

/* --- ethtool's netlink --- */

#define ATTRS	64

struct answer {
	int there;		/* the driver answered */
	int has[ATTRS];
	uint32_t value[ATTRS];
};

static int nl = -1, family;

static void attribute(char *buf, size_t *at, int type, const void *data, size_t len)
{
	struct nlattr *a = (struct nlattr *)(buf + *at);

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy((char *)a + NLA_HDRLEN, data, len);
	*at += NLA_ALIGN(a->nla_len);
}

/* Sends one request; its attributes begin at NLMSG_HDRLEN + GENL_HDRLEN. Returns the length of the reply or -1. */
static ssize_t request(int type, int cmd, int version, char *buf, size_t len, char *reply, size_t size)
{
	struct nlmsghdr *h = (struct nlmsghdr *)buf;
	struct genlmsghdr *g = (struct genlmsghdr *)(buf + NLMSG_HDRLEN);
	static uint32_t seq;
	ssize_t got;

	*h = (struct nlmsghdr){ .nlmsg_len = len, .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = ++seq };
	*g = (struct genlmsghdr){ .cmd = cmd, .version = version };
	if (send(nl, buf, len, 0) < 0)
		return -1;
	do {
		got = recv(nl, reply, size, 0);
		if (got < (ssize_t)NLMSG_HDRLEN)
			return -1;
		h = (struct nlmsghdr *)reply;
	} while (h->nlmsg_seq != seq);
	return h->nlmsg_type == NLMSG_ERROR ? -1 : got;
}

static int open_netlink(void)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	char buf[256], reply[8192];
	size_t at = NLMSG_HDRLEN + GENL_HDRLEN;
	ssize_t got;

	nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (nl < 0 || connect(nl, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -1;
	memset(buf, 0, sizeof(buf));
	attribute(buf, &at, CTRL_ATTR_FAMILY_NAME, ETHTOOL_GENL_NAME, sizeof(ETHTOOL_GENL_NAME));
	got = request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, buf, at, reply, sizeof(reply));
	at = NLMSG_HDRLEN + GENL_HDRLEN;
	while (got > 0 && at + NLA_HDRLEN <= (size_t)got) {
		struct nlattr *a = (struct nlattr *)(reply + at);

		if (a->nla_len < NLA_HDRLEN)
			break;
		if (a->nla_type == CTRL_ATTR_FAMILY_ID)
			family = *(uint16_t *)((char *)a + NLA_HDRLEN);
		at += NLA_ALIGN(a->nla_len);
	}
	return family ? 0 : -1;
}

static void get(const char *dev, int cmd, struct answer *out)
{
	char buf[256], reply[16384], header[64];
	size_t at = 0, room;
	ssize_t got;

	memset(out, 0, sizeof(*out));
	if (nl < 0 && open_netlink() < 0) {
		fprintf(stderr, "state: this kernel has no netlink for ethtool\n");
		exit(1);
	}
	memset(buf, 0, sizeof(buf));
	memset(header, 0, sizeof(header));
	attribute(header, &at, ETHTOOL_A_HEADER_DEV_NAME, dev, strlen(dev) + 1);
	room = NLMSG_HDRLEN + GENL_HDRLEN;
	/* The header is attribute 1 of each of these requests. */
	attribute(buf, &room, ETHTOOL_A_CHANNELS_HEADER | NLA_F_NESTED, header, at);
	got = request(family, cmd, ETHTOOL_GENL_VERSION, buf, room, reply, sizeof(reply));
	if (got < 0)
		return;
	out->there = 1;
	at = NLMSG_HDRLEN + GENL_HDRLEN;
	while (at + NLA_HDRLEN <= (size_t)got) {
		struct nlattr *a = (struct nlattr *)(reply + at);
		int type = a->nla_type & NLA_TYPE_MASK, len = a->nla_len - NLA_HDRLEN;
		void *data = (char *)a + NLA_HDRLEN;

		if (len < 0)
			break;
		if (type < ATTRS && (len == 1 || len == 4)) {
			out->has[type] = 1;
			out->value[type] = len == 1 ? *(uint8_t *)data : *(uint32_t *)data;
		}
		at += NLA_ALIGN(a->nla_len);
	}
}

struct word {
	const char *name;
	int attr;
	const char *const *values;	/* names of the numbers; NULL: the number itself is printed */
};

static const char *const off_on[] = { "off", "on", NULL };
static const char *const split[] = { "n/a", "off", "on", NULL };

static void words(const struct answer *a, const struct word *w)
{
	for (; a->there && w->name; w++) {
		int names = 0;

		while (w->values && w->values[names])
			names++;
		if (!a->has[w->attr] || (names && a->value[w->attr] >= (uint32_t)names))
			printf(" %s n/a", w->name);
		else if (w->values)
			printf(" %s %s", w->name, w->values[a->value[w->attr]]);
		else
			printf(" %s %u", w->name, a->value[w->attr]);
	}
	putchar('\n');
}

static void channels(const char *dev)
{
	static const struct word what[] = {
		{ "RX:", ETHTOOL_A_CHANNELS_RX_COUNT, NULL },
		{ "TX:", ETHTOOL_A_CHANNELS_TX_COUNT, NULL },
		{ "Other:", ETHTOOL_A_CHANNELS_OTHER_COUNT, NULL },
		{ "Combined:", ETHTOOL_A_CHANNELS_COMBINED_COUNT, NULL },
		{ NULL, 0, NULL },
	};
	struct answer a;

	get(dev, ETHTOOL_MSG_CHANNELS_GET, &a);
	printf("channels%s", a.there ? " Current hardware settings:" : "");
	words(&a, what);
}

static void rings(const char *dev)
{
	static const struct word what[] = {
		{ "RX:", ETHTOOL_A_RINGS_RX, NULL },
		{ "RX Mini:", ETHTOOL_A_RINGS_RX_MINI, NULL },
		{ "RX Jumbo:", ETHTOOL_A_RINGS_RX_JUMBO, NULL },
		{ "TX:", ETHTOOL_A_RINGS_TX, NULL },
		{ "RX Buf Len:", ETHTOOL_A_RINGS_RX_BUF_LEN, NULL },
		{ "CQE Size:", ETHTOOL_A_RINGS_CQE_SIZE, NULL },
		{ "TX Push:", ETHTOOL_A_RINGS_TX_PUSH, off_on },
		{ "TCP data split:", ETHTOOL_A_RINGS_TCP_DATA_SPLIT, split },
		{ NULL, 0, NULL },
	};
	struct answer a;

	get(dev, ETHTOOL_MSG_RINGS_GET, &a);
	printf("rings%s", a.there ? " Current hardware settings:" : "");
	words(&a, what);
}

static void moderation(const char *dev)
{
	static const struct word what[] = {
		{ "Adaptive RX:", ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX, off_on },
		{ "TX:", ETHTOOL_A_COALESCE_USE_ADAPTIVE_TX, off_on },
		{ "rx-usecs:", ETHTOOL_A_COALESCE_RX_USECS, NULL },
		{ "rx-frames:", ETHTOOL_A_COALESCE_RX_MAX_FRAMES, NULL },
		{ "rx-usecs-irq:", ETHTOOL_A_COALESCE_RX_USECS_IRQ, NULL },
		{ "rx-frames-irq:", ETHTOOL_A_COALESCE_RX_MAX_FRAMES_IRQ, NULL },
		{ "tx-usecs:", ETHTOOL_A_COALESCE_TX_USECS, NULL },
		{ "tx-frames:", ETHTOOL_A_COALESCE_TX_MAX_FRAMES, NULL },
		{ "tx-usecs-irq:", ETHTOOL_A_COALESCE_TX_USECS_IRQ, NULL },
		{ "tx-frames-irq:", ETHTOOL_A_COALESCE_TX_MAX_FRAMES_IRQ, NULL },
		{ "rx-usecs-low:", ETHTOOL_A_COALESCE_RX_USECS_LOW, NULL },
		{ "tx-usecs-low:", ETHTOOL_A_COALESCE_TX_USECS_LOW, NULL },
		{ "rx-usecs-high:", ETHTOOL_A_COALESCE_RX_USECS_HIGH, NULL },
		{ "tx-usecs-high:", ETHTOOL_A_COALESCE_TX_USECS_HIGH, NULL },
		{ NULL, 0, NULL },
	};
	struct answer a;

	get(dev, ETHTOOL_MSG_COALESCE_GET, &a);
	printf("moderation");
	words(&a, what);
}

/* --- the RSS table, by ioctl: netlink has none before 6.3 --- */

static int ask(const char *dev, void *data)
{
	static int s = -1;
	struct ifreq r = { 0 };

	if (s < 0)
		s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	strncpy(r.ifr_name, dev, IFNAMSIZ - 1);
	r.ifr_data = data;
	return ioctl(s, SIOCETHTOOL, &r);
}

static void table(const char *dev)
{
	struct ethtool_rxnfc count = { .cmd = ETHTOOL_GRXRINGS };
	struct ethtool_rxfh size = { .cmd = ETHTOOL_GRSSH }, *t;
	uint32_t i;

	printf("table");
	/* As in ethtool, the table is only printed if the number of queues can be read. */
	if (ask(dev, &count) < 0 || ask(dev, &size) < 0 || !size.indir_size) {
		putchar('\n');
		return;
	}
	t = calloc(1, sizeof(*t) + size.indir_size * sizeof(uint32_t) + size.key_size);
	if (!t)
		exit(1);
	t->cmd = ETHTOOL_GRSSH;
	t->indir_size = size.indir_size;
	t->key_size = size.key_size;
	if (ask(dev, t) == 0) {
		const uint8_t *key = (const uint8_t *)&t->rss_config[t->indir_size];

		for (i = 0; i < t->indir_size; i++) {
			if (i % 8 == 0)
				printf(" %u:", i);
			printf(" %u", t->rss_config[i]);
		}
		for (i = 0; i < t->key_size; i++)
			printf(i ? ":%02x" : "\nkey %02x", key[i]);
	}
	putchar('\n');
	free(t);
}

/* --- waiting --- */

static int link_of(const char *dev)
{
	char path[PATH_MAX], value[16];
	int i;

	snprintf(path, sizeof(path), "/sys/class/net/%s/carrier", dev);
	for (i = 0; i < 200; i++) {
		if (!first_line(path, value, sizeof(value)) && !strcmp(value, "1"))
			return 0;
		usleep(50000);
	}
	printf("%s has no link\n", dev);
	return 1;
}

static int arrived(const char *dev)
{
	int numbers[MOST], n = vectors(dev, numbers, MOST), i;
	char name[512], may[512], goes[512];

	for (i = 0; i < n; i++) {
		action(numbers[i], name, sizeof(name));
		if (!strstr(name, "TxRx-") && !strstr(name, "-rx-") && !strstr(name, "-tx-"))
			continue;
		irq_file(numbers[i], "smp_affinity_list", may, sizeof(may));
		irq_file(numbers[i], "effective_affinity_list", goes, sizeof(goes));
		if (strcmp(may, goes))
			return 0;
	}
	return 1;
}

static int settled(char **devs)
{
	int i, k;

	for (i = 0; i < 600; i++) {
		for (k = 0; devs[k] && arrived(devs[k]); k++)
			;
		if (!devs[k])
			return 0;
		usleep(100000);
	}
	printf("interrupts of");
	for (k = 0; devs[k]; k++)
		printf(" %s", devs[k]);
	printf(" have not arrived\n");
	return 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int numbers[MOST], n, i, failed = 0;
	char value[512];

	if (!strcmp(what, "irqs") && argc == 3) {
		n = vectors(argv[2], numbers, MOST);
		for (i = 0; i < n; i++)
			printf("%d\n", numbers[i]);
		return 0;
	}
	if (!strcmp(what, "queue-irq") && argc == 4) {
		n = vectors(argv[2], numbers, MOST);
		for (i = 0; i < n; i++) {
			action(numbers[i], value, sizeof(value));
			if (strlen(value) >= strlen(argv[3]) && !strcmp(value + strlen(value) - strlen(argv[3]), argv[3])) {
				printf("%d\n", numbers[i]);
				return 0;
			}
		}
		return 1;
	}
	if (!strcmp(what, "affinity")) {
		for (i = 2; i < argc; i++)
			affinity(argv[i]);
		return 0;
	}
	if (!strcmp(what, "links")) {
		for (i = 2; i < argc; i++)
			failed = link_of(argv[i]);
		return failed;
	}
	if (!strcmp(what, "settled"))
		return settled(argv + 2);
	for (i = 1; i < argc; i++) {
		channels(argv[i]);
		rings(argv[i]);
		moderation(argv[i]);
		table(argv[i]);
		affinity(argv[i]);
		queues(argv[i]);
	}
	first_line("/proc/sys/net/core/rps_sock_flow_entries", value, sizeof(value));
	printf("rfs %s\n", value);
	return 0;
}
