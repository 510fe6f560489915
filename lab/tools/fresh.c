// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * fresh: saves the settings of a guest that has just booted and restores them, so that scenarios do not affect each other.
 *
 *   fresh save FILE DEV...     saves the present settings
 *   fresh restore FILE         restores the settings that differ, and prints a line for each
 *
 * Saved are channels, rings, moderation, RSS, hash fields, features and pause frames of the devices; the CPUs of every
 * interrupt, by its name, because numbers change with the channels; RPS, RFS, XPS and NAPI files, sysctls of the network,
 * wake-up times of CPUs and the parameters of the test NIC. Rules and RSS contexts are removed: a fresh guest has none.
 */
#define _GNU_SOURCE
#include <glob.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCKS	4
#define TABLE	512
#define KEY	256
#define HASHED	4

static const uint32_t hashed[HASHED] = { TCP_V4_FLOW, UDP_V4_FLOW, TCP_V6_FLOW, UDP_V6_FLOW };

struct device {
	char name[IFNAMSIZ];
	int up, carrier;
	int has_channels, has_rings, has_moderation, has_pause, has_table, blocks, has_fields[HASHED];
	struct ethtool_channels channels;
	struct ethtool_ringparam rings;
	struct ethtool_coalesce moderation;
	struct ethtool_pauseparam pause;
	uint32_t table_size, key_size, requested[BLOCKS];
	uint64_t fields[HASHED];
	uint32_t table[TABLE];
	uint8_t key[KEY];
};

static int sock = -1;

static int ask(const char *dev, void *data)
{
	struct ifreq r = { 0 };

	strncpy(r.ifr_name, dev, IFNAMSIZ - 1);
	r.ifr_data = data;
	return ioctl(sock, SIOCETHTOOL, &r);
}

static int flags(const char *dev)
{
	struct ifreq r = { 0 };

	strncpy(r.ifr_name, dev, IFNAMSIZ - 1);
	return ioctl(sock, SIOCGIFFLAGS, &r) < 0 ? 0 : r.ifr_flags;
}

static int first_line(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "r");

	*line = 0;
	if (!f)
		return -1;
	if (!fgets(line, size, f))
		*line = 0;
	fclose(f);
	line[strcspn(line, "\n")] = 0;
	return *line ? 0 : -1;
}

static int carrier(const char *dev)
{
	char path[PATH_MAX], value[16];

	snprintf(path, sizeof(path), "/sys/class/net/%s/carrier", dev);
	return !first_line(path, value, sizeof(value)) && !strcmp(value, "1");
}

struct buffer {
	struct ethtool_rxfh head;
	uint8_t data[TABLE * 4 + KEY];
};

static void get(const char *dev, struct device *d)
{
	struct {
		struct ethtool_gfeatures head;
		struct ethtool_get_features_block block[BLOCKS];
	} f = { .head = { .cmd = ETHTOOL_GFEATURES, .size = BLOCKS } };
	static struct buffer b;
	uint32_t i;

	memset(d, 0, sizeof(*d));
	strncpy(d->name, dev, IFNAMSIZ - 1);
	d->up = flags(dev) & IFF_UP;
	d->carrier = carrier(dev);
	d->channels.cmd = ETHTOOL_GCHANNELS;
	d->has_channels = !ask(dev, &d->channels);
	d->rings.cmd = ETHTOOL_GRINGPARAM;
	d->has_rings = !ask(dev, &d->rings);
	d->moderation.cmd = ETHTOOL_GCOALESCE;
	d->has_moderation = !ask(dev, &d->moderation);
	d->pause.cmd = ETHTOOL_GPAUSEPARAM;
	d->has_pause = !ask(dev, &d->pause);
	if (!ask(dev, &f)) {
		d->blocks = f.head.size < BLOCKS ? f.head.size : BLOCKS;
		for (i = 0; i < (uint32_t)d->blocks; i++)
			d->requested[i] = f.block[i].requested;
	}
	for (i = 0; i < HASHED; i++) {
		struct ethtool_rxnfc c = { .cmd = ETHTOOL_GRXFH, .flow_type = hashed[i] };

		d->has_fields[i] = !ask(dev, &c);
		d->fields[i] = c.data;
	}
	memset(&b, 0, sizeof(b));
	b.head.cmd = ETHTOOL_GRSSH;
	if (ask(dev, &b) < 0 || b.head.indir_size > TABLE || b.head.key_size > KEY)
		return;
	d->table_size = b.head.indir_size;
	d->key_size = b.head.key_size;
	b.head.cmd = ETHTOOL_GRSSH;
	if (ask(dev, &b) < 0)
		return;
	d->has_table = 1;
	memcpy(d->table, b.data, 4 * d->table_size);
	memcpy(d->key, b.data + 4 * d->table_size, d->key_size);
}

static void told(const char *where, const char *what, int failed)
{
	printf("# as at boot: %s %s%s\n", where, what, failed ? ": FAILED" : "");
}

/* Without a key: resets the table to the driver's default. With a key: writes only the key. */
static int reset_table(const char *dev, const uint8_t *key, uint32_t size)
{
	static struct buffer b;

	memset(&b, 0, sizeof(b));
	b.head.cmd = ETHTOOL_SRSSH;
	b.head.key_size = key ? size : 0;
	if (key) {
		b.head.indir_size = ETH_RXFH_INDIR_NO_CHANGE;
		memcpy(b.data, key, size);
	}
	return ask(dev, &b);
}

static void remove_contexts(const char *dev)
{
	uint32_t i;

	for (i = 1; i < 16; i++) {
		struct buffer b = { .head = { .cmd = ETHTOOL_GRSSH, .rss_context = i } };

		if (ask(dev, &b) < 0 || !b.head.indir_size)
			continue;
		memset(&b, 0, sizeof(b));
		b.head.cmd = ETHTOOL_SRSSH;
		b.head.rss_context = i;
		if (!ask(dev, &b))
			told(dev, "an RSS context that was there", 0);
	}
}

static void remove_rules(const char *dev)
{
	struct ethtool_rxnfc count = { .cmd = ETHTOOL_GRXCLSRLCNT }, *all;
	uint32_t i;

	if (ask(dev, &count) < 0 || !count.rule_cnt)
		return;
	all = calloc(1, sizeof(*all) + count.rule_cnt * sizeof(uint32_t));
	if (!all)
		exit(1);
	all->cmd = ETHTOOL_GRXCLSRLALL;
	all->rule_cnt = count.rule_cnt;
	if (!ask(dev, all))
		for (i = 0; i < all->rule_cnt; i++) {
			struct ethtool_rxnfc gone = { .cmd = ETHTOOL_SRXCLSRLDEL };

			gone.fs.location = all->rule_locs[i];
			told(dev, "a rule that was there", ask(dev, &gone));
		}
	free(all);
}

/* Values of single queues are not saved: the device's values are written to all of them. */
static int by_queue(const char *dev, const struct ethtool_coalesce *wanted)
{
	struct {
		struct ethtool_per_queue_op head;
		struct ethtool_coalesce queue;
	} *q = calloc(1, sizeof(*q));
	int n, differs = 0;

	if (!q)
		exit(1);
	q->head.cmd = ETHTOOL_PERQUEUE;
	q->head.sub_command = ETHTOOL_GCOALESCE;
	for (n = 0; n < 8; n++) {
		memset(q->head.queue_mask, 0, sizeof(q->head.queue_mask));
		q->head.queue_mask[0] = 1u << n;
		if (ask(dev, q) < 0)
			break;
		differs |= q->queue.rx_coalesce_usecs != wanted->rx_coalesce_usecs ||
			   q->queue.tx_coalesce_usecs != wanted->tx_coalesce_usecs ||
			   q->queue.rx_max_coalesced_frames != wanted->rx_max_coalesced_frames ||
			   q->queue.use_adaptive_rx_coalesce != wanted->use_adaptive_rx_coalesce;
	}
	free(q);
	return differs;
}

static int table_differs(const struct device *a, const struct device *b)
{
	return memcmp(a->table, b->table, sizeof(a->table));
}

static void put_back(const struct device *was)
{
	const char *dev = was->name;
	static struct device now;
	uint32_t i;
	int restarted = 0, had;

	get(dev, &now);
	had = was->carrier || now.carrier;
	if (was->up && !now.up) {
		struct ifreq r = { 0 };

		strncpy(r.ifr_name, dev, IFNAMSIZ - 1);
		r.ifr_flags = flags(dev) | IFF_UP;
		told(dev, "up", ioctl(sock, SIOCSIFFLAGS, &r));
	}
	remove_rules(dev);
	remove_contexts(dev);
	if (was->has_table && (table_differs(was, &now) || memcmp(&was->channels, &now.channels, sizeof(now.channels))))
		reset_table(dev, NULL, 0);
	if (was->has_channels && memcmp(&was->channels, &now.channels, sizeof(now.channels))) {
		struct ethtool_channels set = was->channels;

		set.cmd = ETHTOOL_SCHANNELS;
		told(dev, "channels", ask(dev, &set));
		restarted = 1;
	}
	if (was->has_table && table_differs(was, &now)) {
		/* igb has its own default table, which it sets again when the number of channels changes. */
		struct ethtool_channels set = was->channels;

		get(dev, &now);
		if (table_differs(was, &now) && was->has_channels && set.combined_count > 1) {
			set.cmd = ETHTOOL_SCHANNELS;
			set.combined_count--;
			ask(dev, &set);
			set.combined_count++;
			ask(dev, &set);
			get(dev, &now);
			restarted = 1;
		}
		told(dev, "RSS table", table_differs(was, &now));
	}
	if (was->has_rings && memcmp(&was->rings, &now.rings, sizeof(now.rings))) {
		struct ethtool_ringparam set = was->rings;

		set.cmd = ETHTOOL_SRINGPARAM;
		told(dev, "rings", ask(dev, &set));
		restarted = 1;
	}
	for (i = 0; i < (uint32_t)was->blocks; i++) {
		struct {
			struct ethtool_sfeatures head;
			struct ethtool_set_features_block block[BLOCKS];
		} set = { .head = { .cmd = ETHTOOL_SFEATURES, .size = was->blocks } };

		if (was->requested[i] == now.requested[i])
			continue;
		set.block[i].valid = was->requested[i] ^ now.requested[i];
		set.block[i].requested = was->requested[i];
		told(dev, "features", ask(dev, &set) < 0);
		restarted = 1;
	}
	if (was->has_pause && memcmp(&was->pause, &now.pause, sizeof(now.pause))) {
		struct ethtool_pauseparam set = was->pause;

		set.cmd = ETHTOOL_SPAUSEPARAM;
		ask(dev, &set);
		told(dev, "pause frames", 0);
		restarted = 1;
	}
	if (restarted)
		get(dev, &now);
	if (was->has_moderation &&
	    (memcmp(&was->moderation, &now.moderation, sizeof(now.moderation)) || by_queue(dev, &was->moderation))) {
		struct ethtool_coalesce set = was->moderation;

		set.cmd = ETHTOOL_SCOALESCE;
		told(dev, "moderation", ask(dev, &set));
	}
	for (i = 0; i < HASHED; i++) {
		struct ethtool_rxnfc set = { .cmd = ETHTOOL_SRXFH, .flow_type = hashed[i], .data = was->fields[i] };

		if (was->has_fields[i] && was->fields[i] != now.fields[i])
			told(dev, "hash fields", ask(dev, &set));
	}
	if (was->has_table && was->key_size && memcmp(was->key, now.key, was->key_size))
		told(dev, "RSS key", reset_table(dev, was->key, was->key_size));
	for (i = 0; had && !carrier(dev) && i < 200; i++)
		usleep(50000);
}

/* --- files --- */

static const char *const kept[] = {
	"/sys/module/mqnic/parameters/*",
	"/proc/sys/net/core/*",
	"/proc/sys/net/ipv4/ip_forward",
	"/proc/sys/net/ipv6/conf/*/disable_ipv6",
	"/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us",
	"/sys/class/net/*/threaded",
	"/sys/class/net/*/napi_defer_hard_irqs",
	"/sys/class/net/*/gro_flush_timeout",
	"/sys/class/net/*/queues/*/rps_cpus",
	"/sys/class/net/*/queues/*/rps_flow_cnt",
	"/sys/class/net/*/queues/*/xps_cpus",
	"/sys/class/net/*/queues/*/xps_rxqs",
};

static void save_files(FILE *out)
{
	char value[4096];
	size_t i, k;

	for (k = 0; k < sizeof(kept) / sizeof(*kept); k++) {
		glob_t found;

		if (glob(kept[k], 0, NULL, &found))
			continue;
		for (i = 0; i < found.gl_pathc; i++)
			if (!first_line(found.gl_pathv[i], value, sizeof(value)))
				fprintf(out, "%s %s\n", found.gl_pathv[i], value);
		globfree(&found);
	}
}

static void put_back_file(const char *path, const char *value)
{
	char now[4096];
	struct stat s;
	FILE *f;

	first_line(path, now, sizeof(now));
	if (!strcmp(now, value) || stat(path, &s) || !(s.st_mode & 0200))
		return;
	f = fopen(path, "w");
	if (!f)
		return;
	fprintf(f, "%s\n", value);
	fclose(f);
	first_line(path, now, sizeof(now));
	told(path, value, strcmp(now, value));
}

struct irq {
	int number;
	char name[64];
};

/* All interrupts with a name of one word. */
static int interrupts(struct irq *all, int room)
{
	char its[512];
	glob_t found;
	size_t i;
	int n = 0;

	if (glob("/sys/kernel/irq/*/actions", 0, NULL, &found))
		return 0;
	for (i = 0; i < found.gl_pathc && n < room; i++) {
		if (first_line(found.gl_pathv[i], its, sizeof(its)) || strchr(its, ' ') || strlen(its) >= sizeof(all->name))
			continue;
		all[n].number = atoi(found.gl_pathv[i] + strlen("/sys/kernel/irq/"));
		strcpy(all[n++].name, its);
	}
	globfree(&found);
	return n;
}

static void cpus_of(int irq, char *path, size_t size)
{
	snprintf(path, size, "/proc/irq/%d/smp_affinity_list", irq);
}

int main(int argc, char **argv)
{
	static struct irq all[4096];
	static char line[8192];
	char path[64], cpus_now[512];
	static struct device d;
	FILE *f;
	int i, n = -1;

	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (argc > 3 && !strcmp(argv[1], "save")) {
		f = fopen(argv[2], "w");
		if (!f)
			goto failed;
		fprintf(f, "%d\n", argc - 3);
		for (i = 3; i < argc; i++) {
			get(argv[i], &d);
			fwrite(&d, sizeof(d), 1, f);
		}
		save_files(f);
		n = interrupts(all, 4096);
		for (i = 0; i < n; i++) {
			cpus_of(all[i].number, path, sizeof(path));
			if (!first_line(path, cpus_now, sizeof(cpus_now)))
				fprintf(f, "irq %s %s\n", all[i].name, cpus_now);
		}
		if (fclose(f))
			goto failed;
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "restore")) {
		f = fopen(argv[2], "r");
		if (!f || !fgets(line, sizeof(line), f))
			goto failed;
		/* Quirks of the test NIC would make the requests fail. */
		put_back_file("/sys/module/mqnic/parameters/quirk", "0");
		put_back_file("/sys/module/mqnic/parameters/separate", "0");
		for (i = atoi(line); i; i--) {
			if (fread(&d, sizeof(d), 1, f) != 1)
				goto failed;
			put_back(&d);
		}
		while (fgets(line, sizeof(line), f)) {
			char *value, *cpus;

			line[strcspn(line, "\n")] = 0;
			value = strchr(line, ' ');
			if (!value)
				continue;
			*value++ = 0;
			cpus = strchr(value, ' ');
			if (strcmp(line, "irq")) {
				put_back_file(line, value);
			} else if (cpus) {
				*cpus++ = 0;
				if (n < 0)
					n = interrupts(all, 4096);
				for (i = 0; i < n; i++) {
					if (strcmp(all[i].name, value))
						continue;
					cpus_of(all[i].number, path, sizeof(path));
					put_back_file(path, cpus);
				}
			}
		}
		return 0;
	}
	fprintf(stderr, "usage: fresh save FILE DEV... | fresh restore FILE\n");
	return 2;
failed:
	perror(argv[2]);
	return 1;
}
