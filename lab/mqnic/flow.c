// SPDX-License-Identifier: GPL-2.0
/* Parses packets, and matches them with rules. */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <net/dsfield.h>
#include <net/ip.h>

#include "mqnic.h"

static void mq_parse_l4(const struct sk_buff *skb, int off, bool v6, struct mq_flow *f)
{
	const struct tcphdr *tcp;
	struct tcphdr tcp_buf;
	const __be32 *p;
	__be32 buf[2];

	p = skb_header_pointer(skb, off, sizeof(buf), buf);
	if (!p)
		return;
	memcpy(f->ports, p, sizeof(f->ports));
	switch (f->l4proto) {
	case IPPROTO_TCP:
		f->type = v6 ? TCP_V6_FLOW : TCP_V4_FLOW;
		f->has_ports = 1;
		tcp = skb_header_pointer(skb, off, sizeof(tcp_buf), &tcp_buf);
		f->payload = tcp ? off + tcp->doff * 4 : 0;
		break;
	case IPPROTO_UDP:
		f->type = v6 ? UDP_V6_FLOW : UDP_V4_FLOW;
		f->has_ports = 1;
		f->payload = off + 8;
		break;
	case IPPROTO_SCTP:
		f->type = v6 ? SCTP_V6_FLOW : SCTP_V4_FLOW;
		f->has_ports = 1;
		f->payload = off + 12;
		break;
	case IPPROTO_ESP:
		f->spi = p[0];
		break;
	case IPPROTO_AH:
		f->spi = p[1];
		break;
	default:
		f->payload = off;
	}
}

/* Both here and when the stack requests steering, the data starts behind the Ethernet header. */
void mq_parse(const struct sk_buff *skb, struct mq_flow *f)
{
	const struct ipv6hdr *ip6;
	const struct vlan_hdr *vh;
	struct ipv6hdr ip6_buf;
	const struct iphdr *ip;
	struct vlan_hdr vh_buf;
	struct iphdr ip_buf;
	int off = 0;

	memset(f, 0, sizeof(*f));
	f->eth = (const struct ethhdr *)skb_mac_header(skb);
	f->proto = skb->protocol;
	if (skb_vlan_tag_present(skb)) {
		f->tagged = 1;
		f->vlan_tci = htons(skb_vlan_tag_get(skb));
		f->vlan_etype = skb->vlan_proto;
	}
	while (eth_type_vlan(f->proto)) {
		vh = skb_header_pointer(skb, off, sizeof(vh_buf), &vh_buf);
		if (!vh)
			return;
		if (!f->tagged) {
			f->tagged = 1;
			f->vlan_tci = vh->h_vlan_TCI;
			f->vlan_etype = f->proto;
		}
		f->proto = vh->h_vlan_encapsulated_proto;
		off += VLAN_HLEN;
	}
	if (f->proto == htons(ETH_P_IP)) {
		ip = skb_header_pointer(skb, off, sizeof(ip_buf), &ip_buf);
		if (!ip || ip->version != 4 || ip->ihl < 5)
			return;
		f->type = IPV4_FLOW;
		f->src[0] = ip->saddr;
		f->dst[0] = ip->daddr;
		f->tos = ip->tos;
		f->l4proto = ip->protocol;
		if (!ip_is_fragment(ip))
			mq_parse_l4(skb, off + ip->ihl * 4, false, f);
	} else if (f->proto == htons(ETH_P_IPV6)) {
		ip6 = skb_header_pointer(skb, off, sizeof(ip6_buf), &ip6_buf);
		if (!ip6 || ip6->version != 6)
			return;
		f->type = IPV6_FLOW;
		memcpy(f->src, &ip6->saddr, 16);
		memcpy(f->dst, &ip6->daddr, 16);
		f->tos = ipv6_get_dsfield(ip6);
		/* Headers behind an extension header are not parsed. */
		f->l4proto = ip6->nexthdr;
		mq_parse_l4(skb, off + sizeof(*ip6), true, f);
	}
}

/* The packet as fields of a flow type; false if it has another type. */
static bool mq_fill(u32 type, const struct mq_flow *f, union ethtool_flow_union *u)
{
	static const u8 l4[] = {
		[TCP_V4_FLOW] = IPPROTO_TCP, [TCP_V6_FLOW] = IPPROTO_TCP,
		[UDP_V4_FLOW] = IPPROTO_UDP, [UDP_V6_FLOW] = IPPROTO_UDP,
		[SCTP_V4_FLOW] = IPPROTO_SCTP, [SCTP_V6_FLOW] = IPPROTO_SCTP,
		[AH_V4_FLOW] = IPPROTO_AH, [AH_V6_FLOW] = IPPROTO_AH,
		[ESP_V4_FLOW] = IPPROTO_ESP, [ESP_V6_FLOW] = IPPROTO_ESP,
	};

	memset(u, 0, sizeof(*u));
	if (type < ARRAY_SIZE(l4) && l4[type] && f->l4proto != l4[type])
		return false;
	switch (type) {
	case TCP_V4_FLOW:
	case UDP_V4_FLOW:
	case SCTP_V4_FLOW:
		u->tcp_ip4_spec.ip4src = f->src[0];
		u->tcp_ip4_spec.ip4dst = f->dst[0];
		u->tcp_ip4_spec.psrc = f->ports[0];
		u->tcp_ip4_spec.pdst = f->ports[1];
		u->tcp_ip4_spec.tos = f->tos;
		return f->proto == htons(ETH_P_IP) && f->has_ports;
	case AH_V4_FLOW:
	case ESP_V4_FLOW:
		u->ah_ip4_spec.ip4src = f->src[0];
		u->ah_ip4_spec.ip4dst = f->dst[0];
		u->ah_ip4_spec.spi = f->spi;
		u->ah_ip4_spec.tos = f->tos;
		return f->proto == htons(ETH_P_IP);
	case IPV4_USER_FLOW:
		u->usr_ip4_spec.ip4src = f->src[0];
		u->usr_ip4_spec.ip4dst = f->dst[0];
		memcpy(&u->usr_ip4_spec.l4_4_bytes, f->ports, 4);
		u->usr_ip4_spec.tos = f->tos;
		u->usr_ip4_spec.ip_ver = ETH_RX_NFC_IP4;
		u->usr_ip4_spec.proto = f->l4proto;
		return f->proto == htons(ETH_P_IP) && f->type;
	case TCP_V6_FLOW:
	case UDP_V6_FLOW:
	case SCTP_V6_FLOW:
		memcpy(u->tcp_ip6_spec.ip6src, f->src, 16);
		memcpy(u->tcp_ip6_spec.ip6dst, f->dst, 16);
		u->tcp_ip6_spec.psrc = f->ports[0];
		u->tcp_ip6_spec.pdst = f->ports[1];
		u->tcp_ip6_spec.tclass = f->tos;
		return f->proto == htons(ETH_P_IPV6) && f->has_ports;
	case AH_V6_FLOW:
	case ESP_V6_FLOW:
		memcpy(u->ah_ip6_spec.ip6src, f->src, 16);
		memcpy(u->ah_ip6_spec.ip6dst, f->dst, 16);
		u->ah_ip6_spec.spi = f->spi;
		u->ah_ip6_spec.tclass = f->tos;
		return f->proto == htons(ETH_P_IPV6);
	case IPV6_USER_FLOW:
		memcpy(u->usr_ip6_spec.ip6src, f->src, 16);
		memcpy(u->usr_ip6_spec.ip6dst, f->dst, 16);
		memcpy(&u->usr_ip6_spec.l4_4_bytes, f->ports, 4);
		u->usr_ip6_spec.tclass = f->tos;
		u->usr_ip6_spec.l4_proto = f->l4proto;
		return f->proto == htons(ETH_P_IPV6) && f->type;
	case ETHER_FLOW:
		ether_addr_copy(u->ether_spec.h_dest, f->eth->h_dest);
		ether_addr_copy(u->ether_spec.h_source, f->eth->h_source);
		u->ether_spec.h_proto = f->proto;
		return true;
	}
	return false;
}

static bool mq_differ(const void *a, const void *b, const void *mask, int n)
{
	const u8 *x = a, *y = b, *m = mask;

	while (n--)
		if ((*x++ ^ *y++) & *m++)
			return true;
	return false;
}

/* user-def: 16 bits of value, above them the offset in the payload, as in i40e. */
static bool mq_user_matches(const struct ethtool_rx_flow_spec *r, const struct sk_buff *skb,
			    const struct mq_flow *f)
{
	u32 value = ntohl(r->h_ext.data[1]), mask = ntohl(r->m_ext.data[1]);
	const __be16 *p;
	__be16 buf;

	if (!mask)
		return true;
	if (!f->payload)
		return false;
	p = skb_header_pointer(skb, f->payload + ((value & mask) >> 16), sizeof(buf), &buf);
	return p && !((ntohs(*p) ^ value) & mask & 0xffff);
}

bool mq_matches(const struct ethtool_rx_flow_spec *r, const struct sk_buff *skb,
		const struct mq_flow *f)
{
	u32 type = r->flow_type & ~(FLOW_EXT | FLOW_MAC_EXT | FLOW_RSS);
	union ethtool_flow_union u;

	if (!mq_fill(type, f, &u) || mq_differ(&u, &r->h_u, &r->m_u, sizeof(u)))
		return false;
	if ((r->flow_type & FLOW_MAC_EXT) &&
	    mq_differ(f->eth->h_dest, r->h_ext.h_dest, r->m_ext.h_dest, ETH_ALEN))
		return false;
	if (!(r->flow_type & FLOW_EXT))
		return true;
	if ((r->m_ext.vlan_tci || r->m_ext.vlan_etype) && !f->tagged)
		return false;
	if ((f->vlan_tci ^ r->h_ext.vlan_tci) & r->m_ext.vlan_tci)
		return false;
	if ((f->vlan_etype ^ r->h_ext.vlan_etype) & r->m_ext.vlan_etype)
		return false;
	return mq_user_matches(r, skb, f);
}
