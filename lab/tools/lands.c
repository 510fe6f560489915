// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * lands: sends packets, and prints on which receive queue (or CPU) each of them really arrived.
 *
 *   lands -g SEED COUNT              prints random flows, in the notation of `ringwise explain`
 *   lands SEND RECV QUEUES [MAC]     reads such flows, sends a packet of each through SEND and prints
 *                                    `FLOW QUEUE` for the queue of RECV on which it arrived
 *   lands -w FILE                    writes their packets into a pcap file instead
 *   lands -c SEND RECV CPUS [MAC]    the same with the CPU on which the network stack received it
 *
 * The kernel reports this for each packet: a group of packet sockets on RECV shares its packets by the
 * receive queue that the driver recorded (PACKET_FANOUT_QM: number + 1, so socket 0 gets packets without a number), or
 * by the CPU. Each packet carries its number, so packets of other programs are ignored.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAXSOCK	72
#define BATCH	32
#define TRIES	60

struct flow {
	char text[160];
	int got;		/* -1: not arrived yet */
	int len;
	uint8_t frame[160];
};

static const char magic[8] = "lands-01";
static struct flow *flows;
static int nflows;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* --- random flows --- */

static uint64_t seed;

static uint32_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 16;
}

static void generate(int count)
{
	static const char *names[] = { "tcp", "udp", "sctp", "esp" };

	while (count--) {
		int kind = rnd() % 100, six = rnd() % 100 < 30, frag = kind >= 95;
		const char *name = names[kind < 50 ? 0 : kind < 82 ? 1 : kind < 88 ? 2 : kind < 95 ? 3 : 1];
		int ports = strcmp(name, "esp") && !frag;
		char a[64], b[64];

		if (six) {
			snprintf(a, sizeof(a), "2001:db8:%x:%x:%x:%x:%x:%x", 1 + rnd() % 0xfffe, 1 + rnd() % 0xfffe,
				 1 + rnd() % 0xfffe, 1 + rnd() % 0xfffe, 1 + rnd() % 0xfffe, 1 + rnd() % 0xfffe);
			snprintf(b, sizeof(b), "2001:db9:%x:%x:%x:%x:%x:%x", 1 + rnd() % 0xfffe, 1 + rnd() % 0xfffe,
				 1 + rnd() % 0xfffe, 1 + rnd() % 0xfffe, 1 + rnd() % 0xfffe, 1 + rnd() % 0xfffe);
		} else {
			snprintf(a, sizeof(a), "%u.%u.%u.%u", 11 + rnd() % 100, rnd() % 256, rnd() % 256, 1 + rnd() % 254);
			snprintf(b, sizeof(b), "%u.%u.%u.%u", 128 + rnd() % 40, rnd() % 256, rnd() % 256, 1 + rnd() % 254);
		}
		if (!ports)
			printf("%s-%s/%s%s\n", a, b, name, frag ? "/frag" : "");
		else if (six)
			printf("[%s]:%u-[%s]:%u/%s\n", a, 1 + rnd() % 65535, b, 1 + rnd() % 65535, name);
		else
			printf("%s:%u-%s:%u/%s\n", a, 1 + rnd() % 65535, b, 1 + rnd() % 65535, name);
	}
}

/* --- frames --- */

static int side(char *text, int *six, uint8_t *addr, int *port)
{
	char *p;

	*port = -1;
	if (*text == '[') {
		p = strchr(++text, ']');
		if (!p)
			return -1;
		*p = 0;
		if (p[1] == ':')
			*port = atoi(p + 2);
		*six = 1;
	} else {
		p = strchr(text, ':');
		*six = p && strchr(p + 1, ':');
		if (p && !*six) {
			*port = atoi(p + 1);
			*p = 0;
		}
	}
	return inet_pton(*six ? AF_INET6 : AF_INET, text, addr) == 1 ? 0 : -1;
}

static void put16(uint8_t *p, unsigned v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static int protocol(const char *name)
{
	if (!strcmp(name, "tcp"))
		return 6;
	if (!strcmp(name, "udp"))
		return 17;
	if (!strcmp(name, "sctp"))
		return 132;
	return strcmp(name, "esp") ? atoi(name) : 50;
}

static int build(struct flow *f, uint32_t id, const uint8_t *to, const uint8_t *from)
{
	char text[160], *dash, *slash, *more;
	int six, six2, sport, dport, proto, frag, l4, n = 14, i;
	uint8_t src[16], dst[16], *p = f->frame;

	strcpy(text, f->text);
	slash = strchr(text, '/');
	dash = strchr(text, '-');
	if (!slash || !dash)
		return -1;
	*slash = *dash = 0;
	more = strchr(slash + 1, '/');
	if (more)
		*more = 0;
	frag = more && !strcmp(more + 1, "frag");
	proto = protocol(slash + 1);
	if (side(text, &six, src, &sport) || side(dash + 1, &six2, dst, &dport) || six != six2)
		return -1;
	memcpy(p, to, 6);
	memcpy(p + 6, from, 6);
	put16(p + 12, six ? 0x86dd : 0x0800);
	l4 = frag ? 8 : proto == 6 ? 20 : proto == 17 ? 8 : proto == 132 ? 12 : 16;
	l4 += 12;
	if (six) {
		p[n] = 0x60;
		put16(p + n + 4, l4 + (frag ? 8 : 0));
		p[n + 6] = frag ? 44 : proto;
		p[n + 7] = 64;
		memcpy(p + n + 8, src, 16);
		memcpy(p + n + 24, dst, 16);
		n += 40;
		if (frag) {
			p[n] = proto;
			put16(p + n + 2, 185 << 3);	/* neither the first fragment nor the last but one */
			memcpy(p + n + 4, &id, 4);
			n += 8;
		}
	} else {
		uint32_t sum = 0;

		p[n] = 0x45;
		put16(p + n + 2, 20 + l4);
		put16(p + n + 4, id);
		if (frag)
			put16(p + n + 6, 185);
		p[n + 8] = 64;
		p[n + 9] = proto;
		memcpy(p + n + 12, src, 4);
		memcpy(p + n + 16, dst, 4);
		for (i = 0; i < 20; i += 2)
			sum += p[n + i] << 8 | p[n + i + 1];
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		put16(p + n + 10, ~sum);
		n += 20;
	}
	if (!frag && sport >= 0) {
		put16(p + n, sport);
		put16(p + n + 2, dport);
		if (proto == 6) {
			p[n + 12] = 0x50;
			p[n + 13] = 0x10;
		}
		if (proto == 17)
			put16(p + n + 4, l4);
	}
	n += l4 - 12;
	memcpy(p + n, magic, 8);
	memcpy(p + n + 8, &id, 4);
	n += 12;
	f->len = n < 60 ? 60 : n;
	return 0;
}

/* --- sockets --- */

static void mac_of(const char *dev, uint8_t *mac)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r = { 0 };

	strncpy(r.ifr_name, dev, IFNAMSIZ - 1);
	if (s < 0 || ioctl(s, SIOCGIFHWADDR, &r) < 0)
		die(dev);
	memcpy(mac, r.ifr_hwaddr.sa_data, 6);
	close(s);
}

static int open_on(const char *dev, int protocol)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_protocol = htons(protocol) };
	int s = socket(AF_PACKET, SOCK_RAW, 0);

	a.sll_ifindex = if_nametoindex(dev);
	if (s < 0 || !a.sll_ifindex || bind(s, (struct sockaddr *)&a, sizeof(a)) < 0)
		die(dev);
	return s;
}

static int collect(int *socks, int n, int wait_ms)
{
	struct pollfd fds[MAXSOCK];
	int i, found = 0;

	for (i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = socks[i], .events = POLLIN };
	if (poll(fds, n, wait_ms) <= 0)
		return 0;
	for (i = 0; i < n; i++) {
		uint8_t buf[2048], *m;
		struct sockaddr_ll from;
		socklen_t len = sizeof(from);
		ssize_t got;

		while ((got = recvfrom(socks[i], buf, sizeof(buf), MSG_DONTWAIT, (struct sockaddr *)&from, &len)) > 0) {
			uint32_t id;

			len = sizeof(from);
			if (from.sll_pkttype == PACKET_OUTGOING)
				continue;
			m = memmem(buf, got, magic, 8);
			if (!m || m + 12 > buf + got)
				continue;
			memcpy(&id, m + 8, 4);
			if (id < (uint32_t)nflows && flows[id].got < 0) {
				flows[id].got = i;
				found++;
			}
		}
	}
	return found;
}

static void write_pcap(const char *path)
{
	uint32_t head[6] = { 0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1 };
	FILE *f = fopen(path, "wb");
	int i;

	if (!f)
		die(path);
	fwrite(head, sizeof(head), 1, f);
	for (i = 0; i < nflows; i++) {
		uint32_t r[4] = { 1700000000, i, flows[i].len, flows[i].len };

		fwrite(r, sizeof(r), 1, f);
		fwrite(flows[i].frame, flows[i].len, 1, f);
	}
	if (fclose(f))
		die(path);
}

int main(int argc, char **argv)
{
	int by_cpu = 0, n, i, at, socks[MAXSOCK], out, lost = 0;
	uint8_t to[6] = { 2, 2, 2, 2, 2, 2 }, from[6] = { 2, 2, 2, 2, 2, 1 };
	const char *file = NULL;
	char line[256];
	size_t room = 0;

	if (argc == 4 && !strcmp(argv[1], "-g")) {
		seed = 0x9e3779b97f4a7c15ull ^ strtoull(argv[2], NULL, 10) * 0x2545f4914f6cdd1dull;
		for (i = 0; i < 20; i++)
			rnd();
		generate(atoi(argv[3]));
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "-c")) {
		by_cpu = 1;
		argv++;
		argc--;
	}
	if (argc == 3 && !strcmp(argv[1], "-w")) {
		file = argv[2];
	} else if (argc < 4) {
		fprintf(stderr, "usage: lands [-c] SEND RECV QUEUES [MAC] < FLOWS | lands -g SEED COUNT | lands -w FILE < FLOWS\n");
		return 2;
	}
	n = file ? 0 : atoi(argv[3]) + !by_cpu;
	if (!file) {
		if (n < 1 || n > MAXSOCK)
			return 2;
		mac_of(argv[1], from);
		mac_of(argv[2], to);
	}
	if (argc > 4)
		sscanf(argv[4], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", to, to + 1, to + 2, to + 3, to + 4, to + 5);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, " \t\n")] = 0;
		if (!*line || *line == '#' || strlen(line) >= sizeof(flows->text))
			continue;
		if ((size_t)nflows == room) {
			room = room ? 2 * room : 1024;
			flows = realloc(flows, room * sizeof(*flows));
			if (!flows)
				die("memory");
		}
		memset(&flows[nflows], 0, sizeof(*flows));
		strcpy(flows[nflows].text, line);
		flows[nflows].got = -1;
		if (build(&flows[nflows], nflows, to, from)) {
			fprintf(stderr, "not a flow: %s\n", line);
			return 2;
		}
		nflows++;
	}
	if (file) {
		write_pcap(file);
		return 0;
	}
	for (i = 0; i < n; i++) {
		struct packet_mreq promisc = { .mr_ifindex = if_nametoindex(argv[2]), .mr_type = PACKET_MR_PROMISC };
		int size = 4 << 20, group = (getpid() & 0xffff) | (by_cpu ? PACKET_FANOUT_CPU : PACKET_FANOUT_QM) << 16;

		socks[i] = open_on(argv[2], ETH_P_ALL);
		setsockopt(socks[i], SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
		if (setsockopt(socks[i], SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promisc, sizeof(promisc)) < 0 ||
		    setsockopt(socks[i], SOL_PACKET, PACKET_FANOUT, &group, sizeof(group)) < 0)
			die("PACKET_FANOUT");
	}
	out = open_on(argv[1], 0);
	for (at = 0; at < nflows; at += BATCH) {
		int end = at + BATCH < nflows ? at + BATCH : nflows, left = end - at, try;

		for (try = 0; left && try < TRIES; try++) {
			for (i = at; i < end; i++) {
				if (flows[i].got >= 0)
					continue;
				while (send(out, flows[i].frame, flows[i].len, 0) < 0)
					if (errno != ENOBUFS && errno != EAGAIN)
						die("send");
			}
			for (i = 0; left && i < 10 + 2 * try; i++)
				left -= collect(socks, n, 20);
		}
	}
	for (i = 0; i < nflows; i++) {
		int q = flows[i].got - !by_cpu;

		if (flows[i].got < 0) {
			printf("%s lost\n", flows[i].text);
			lost++;
		} else if (q < 0) {
			printf("%s none\n", flows[i].text);
		} else {
			printf("%s %d\n", flows[i].text, q);
		}
	}
	if (lost)
		fprintf(stderr, "%d of %d flows did not arrive\n", lost, nflows);
	return 0;
}
