// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * order: receives the packets that pktgen sends, and prints what was lost and reordered on the way.
 *
 *   order DEV SECONDS     until SECONDS pass without a packet, or SIGTERM comes
 *
 *   received N            packets of pktgen
 *   tap_drops N           packets that this program was too slow for: the other numbers are worth nothing if there are any
 *   flows N               source addresses
 *   late N                packets of a flow that arrived after one of the same flow that was sent later
 *   extent N              the most packets of its flow that one of them arrived behind (RFC 4737, 4.2.2)
 *
 * pktgen numbers its packets (struct pktgen_hdr in net/core/pktgen.c). The socket gets them in the order in which the network
 * stack does.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC	0xbe9be955u
#define FLOWS	4096
#define RECENT	1024		/* the most packets of a flow that one can be behind, as far as is counted */

struct flow {
	uint32_t source, highest;
	uint32_t recent[RECENT];	/* numbers of the latest packets */
	unsigned int seen;
};

static struct flow flows[FLOWS];
static volatile sig_atomic_t over;

static void stop(int signal)
{
	(void)signal;
	over = 1;
}

static struct flow *find(uint32_t source)
{
	unsigned int i;

	for (i = 0; i < FLOWS; i++) {
		if (flows[i].seen && flows[i].source == source)
			return &flows[i];
		if (!flows[i].seen) {
			flows[i].source = source;
			return &flows[i];
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
	unsigned long received = 0, late = 0, extent = 0, used = 0;
	struct tpacket_stats drops = { 0 };
	socklen_t size = sizeof(drops);
	struct sigaction action = { .sa_handler = stop };
	int fd, space = 64 << 20, quiet;
	unsigned char frame[2048];

	if (argc != 3 || (quiet = atoi(argv[2])) < 1) {
		fprintf(stderr, "usage: order DEV SECONDS\n");
		return 2;
	}
	sigaction(SIGTERM, &action, NULL);
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	at.sll_ifindex = if_nametoindex(argv[1]);
	if (fd < 0 || !at.sll_ifindex || setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &space, sizeof(space)) < 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		fprintf(stderr, "order: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	while (!over) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		const struct iphdr *ip = (void *)(frame + ETH_HLEN);
		uint32_t head[2], number;
		unsigned long behind = 0;
		struct flow *flow;
		unsigned int i;
		ssize_t n;

		if (poll(&wait, 1, quiet * 1000) == 0)
			break;
		n = recv(fd, frame, sizeof(frame), MSG_DONTWAIT);
		if (n < (ssize_t)(ETH_HLEN + sizeof(*ip) + 8 + sizeof(head)) || ip->protocol != IPPROTO_UDP)
			continue;
		memcpy(head, frame + ETH_HLEN + ip->ihl * 4 + 8, sizeof(head));
		if (ntohl(head[0]) != MAGIC)
			continue;
		number = ntohl(head[1]);
		received++;
		flow = find(ip->saddr);
		if (!flow) {
			fprintf(stderr, "order: more than %d source addresses\n", FLOWS);
			return 1;
		}
		if (flow->seen && number < flow->highest) {
			late++;
			for (i = 0; i < flow->seen && i < RECENT; i++)
				behind += flow->recent[(flow->seen - 1 - i) % RECENT] > number;
			if (behind > extent)
				extent = behind;
		} else {
			flow->highest = number;
		}
		used += !flow->seen;
		flow->recent[flow->seen++ % RECENT] = number;
	}
	getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &drops, &size);
	printf("received %lu\ntap_drops %u\nflows %lu\nlate %lu\nextent %lu\n", received, drops.tp_drops, used, late, extent);
	return 0;
}
