# The cost model (lab/cost), sourced after lib.sh by scenarios with `# needs: cost`. See "The cost model" in lab/README.md.
COST=/sys/module/labcost/parameters

# cost_load DEV...: loads the module; only packets that these interfaces receive are charged. Without names: all.
cost_load() {
	[ -d "$COST" ] || insmod "$H/labcost.ko" || return
	echo "$*" >$COST/devices
}

# cost_unload: mqnic lets go of the module first
cost_unload() {
	cost_off
	rmmod labcost
}

# cost_on NS [FAR [SIBLING]]: a packet costs NS nanoseconds; the factors are in percent
cost_on() {
	echo "${2:-130}" >"$COST/far_percent"
	echo "${3:-150}" >"$COST/sibling_percent"
	echo "$1" >"$COST/packet_ns"
}

# cost_off: packets cost nothing, in the IP receive path and in mqnic's poll
cost_off() {
	echo 0 >$COST/packet_ns
	if [ -w /sys/module/mqnic/parameters/poll_ns ]; then
		echo 0 >/sys/module/mqnic/parameters/poll_ns
	fi
}

# cost_reset: counting begins anew
cost_reset() {
	echo 0 >/proc/labcost
}

# charged [COLUMN [CPU]]: the sum of a column of /proc/labcost (packets), or its value for one CPU
charged() {
	awk -v name="${1:-packets}" -v cpu="$2" '$1 == "elapsed_ns" { next }
		$1 == "cpu" { for (i = 2; i <= NF; i++) if ($i == name) at = i; next }
		cpu == "" || $1 == cpu { n += $at }
		END { printf "%.0f\n", n }' /proc/labcost
}

# charged_rate SECONDS [COLUMN]: waits so long and prints what was charged in one second, from one reading of the counters
charged_rate() {
	cost_reset
	sleep "$1"
	awk -v name="${2:-packets}" '$1 == "elapsed_ns" { t = $2 / 1e9; next }
		$1 == "cpu" { for (i = 2; i <= NF; i++) if ($i == name) at = i; next }
		{ n += $at }
		END { printf "%.1f\n", n / t }' /proc/labcost
}

# cost_elapsed: milliseconds since cost_reset
cost_elapsed() {
	awk '{ printf "%.0f\n", $2 / 1000000; exit }' /proc/labcost
}
