# make demo   the whole story in a virtual machine
# make test   everything that must hold
# Both install what they need (as root, on Debian 12 or newer) and say what.

CARGO ?= cargo

.PHONY: demo test setup

demo: setup
	@$(CARGO) xtask demo

test: setup
	@$(CARGO) xtask ci

setup:
	@$(CARGO) xtask setup
