# make demo       the whole story in a virtual machine
# make test       what must hold on every change: 14 minutes, 5 if nothing has changed (AGAIN=1: the lab all the same)
# make test-all   all of it, with the whole lab; SINCE=REV: of the lab, what a change since REV can touch
# Each installs what it needs (as root, on Debian 12 or newer) and says what.

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
