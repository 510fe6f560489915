// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * frames: sends frames that most devices cannot spread by ports.
 *
 *   frames SEND RECV KIND COUNT    sends COUNT frames through SEND to the MAC address of RECV
 *
 * Frame N of a kind has the inner (or only) UDP source port 1024 + N; everything else is the same in all frames:
 *
 *   udp         10.9.0.1 to 10.1.1.1, UDP to port 9
 *   pppoe       session 7, IPv4 and UDP inside
 *   lcp         session 7, an echo request of LCP
 *   gre         10.8.0.1 to 10.1.1.1, IPv4 and UDP inside
 *   ipip        10.8.0.1 to 10.1.1.1, IPv4 and UDP inside
 *   esp         10.8.0.1 to 10.1.1.1, SPI N + 256
 *   frag        10.8.0.1 to 10.1.1.1, a later fragment of datagram N
 *   mpls        label 16, IPv4 and UDP inside
 *   vxlan       UDP from port 1024 + N to 4789
 *   wireguard   UDP from port 40000 to 51820
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static uint8_t frame[256];
static int length;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void put8(unsigned v)
{
	frame[length++] = v;
}

static void put16(unsigned v)
{
	put8(v >> 8);
	put8(v & 0xff);
}

static void put32(uint32_t v)
{
	put16(v >> 16);
	put16(v & 0xffff);
}

static void mac_of(const char *dev)
{
	struct ifreq r = { 0 };
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	strncpy(r.ifr_name, dev, IFNAMSIZ - 1);
	if (s < 0 || ioctl(s, SIOCGIFHWADDR, &r) < 0)
		die(dev);
	memcpy(frame + length, r.ifr_hwaddr.sa_data, 6);
	length += 6;
	close(s);
}

/* IPv4 to 10.1.1.1 with this many bytes behind the header. */
static void ip4(const char *from, int protocol, int bytes, int id, int pieces)
{
	int at = length, i;
	uint32_t sum = 0;

	put16(0x4500);
	put16(20 + bytes);
	put16(id);
	put16(pieces);
	put8(64);
	put8(protocol);
	put16(0);
	put32(ntohl(inet_addr(from)));
	put32(ntohl(inet_addr("10.1.1.1")));
	for (i = at; i < length; i += 2)
		sum += frame[i] << 8 | frame[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	frame[at + 10] = ~sum >> 8;
	frame[at + 11] = ~sum;
}

/* UDP without a checksum and with 16 bytes of data. */
static void udp(int from, int to)
{
	put16(from);
	put16(to);
	put16(24);
	put16(0);
	length += 16;
}

static void ip4_udp(const char *from, int sport, int dport)
{
	ip4(from, 17, 24, sport, 0);
	udp(sport, dport);
}

static int build(const char *kind, int n)
{
	int sport = 1024 + n % 60000;

	if (!strcmp(kind, "udp")) {
		put16(0x0800);
		ip4_udp("10.9.0.1", sport, 9);
	} else if (!strcmp(kind, "pppoe")) {
		put16(0x8864);
		put32(0x11000007);
		put16(2 + 44);
		put16(0x0021);
		ip4_udp("10.9.0.1", sport, 9);
	} else if (!strcmp(kind, "lcp")) {
		put16(0x8864);
		put32(0x11000007);
		put16(2 + 8);
		put16(0xc021);
		put32(0x09000008 | (n & 0xff) << 16);
		put32(0);
	} else if (!strcmp(kind, "gre")) {
		put16(0x0800);
		ip4("10.8.0.1", 47, 4 + 44, n, 0);
		put32(0x00000800);
		ip4_udp("10.9.0.1", sport, 9);
	} else if (!strcmp(kind, "ipip")) {
		put16(0x0800);
		ip4("10.8.0.1", 4, 44, n, 0);
		ip4_udp("10.9.0.1", sport, 9);
	} else if (!strcmp(kind, "esp")) {
		put16(0x0800);
		ip4("10.8.0.1", 50, 32, n, 0);
		put32(256 + n);
		put32(1);
		length += 24;
	} else if (!strcmp(kind, "frag")) {
		put16(0x0800);
		ip4("10.8.0.1", 17, 32, n, 185);
		length += 32;
	} else if (!strcmp(kind, "mpls")) {
		put16(0x8847);
		put32(16 << 12 | 1 << 8 | 64);
		ip4_udp("10.9.0.1", sport, 9);
	} else if (!strcmp(kind, "vxlan")) {
		put16(0x0800);
		ip4_udp("10.8.0.1", sport, 4789);
	} else if (!strcmp(kind, "wireguard")) {
		put16(0x0800);
		ip4_udp("10.8.0.1", 40000, 51820);
	} else {
		return -1;
	}
	if (length < 60)
		length = 60;
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_halen = 6 };
	int s, n, count;

	if (argc != 5) {
		fprintf(stderr, "usage: frames SEND RECV KIND COUNT\n");
		return 2;
	}
	s = socket(AF_PACKET, SOCK_RAW, 0);
	to.sll_ifindex = if_nametoindex(argv[1]);
	if (s < 0 || !to.sll_ifindex)
		die(argv[1]);
	count = atoi(argv[4]);
	for (n = 0; n < count; n++) {
		memset(frame, 0, sizeof(frame));
		length = 0;
		mac_of(argv[2]);
		mac_of(argv[1]);
		if (build(argv[3], n)) {
			fprintf(stderr, "frames: no kind %s\n", argv[3]);
			return 2;
		}
		while (sendto(s, frame, length, 0, (struct sockaddr *)&to, sizeof(to)) < 0) {
			if (errno != ENOBUFS && errno != EAGAIN)
				die("sendto");
			usleep(1000);
		}
		/* Receive rings and sampling sockets hold more than this. */
		if (n % 32 == 31)
			usleep(2000);
	}
	return 0;
}
