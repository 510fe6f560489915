# make demo       the demonstration in a virtual machine
# make test       what every change must pass: half an hour, less if nothing has changed (AGAIN=1 runs the lab anyway)
# make test-all   everything, with the whole lab; SINCE=REV: only the part of the lab that a change since REV can affect
# Each installs what it needs (as root, on Debian 12 or newer) and lists it.

CARGO ?= cargo

.PHONY: demo test test-all setup

demo:
	@$(CARGO) xtask demo

test:
	@$(CARGO) xtask ci $(if $(AGAIN),--again)

test-all:
	@$(CARGO) xtask ci --all $(if $(SINCE),--since $(SINCE))

setup:
	@$(CARGO) xtask setup
