"""Reads a profile as tuned does: its loader, and what its net plugin checks. usage: tuned.py MODULES PROFILES"""
import json, logging, sys, types
sys.dont_write_bytecode = True
modules, profiles = sys.argv[1:3]
sys.path.insert(0, modules)

class Stub(types.ModuleType):
    """A library for what is not asked here: devices, D-Bus."""
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (object,), {})

for name in ("pyudev", "dbus", "gi", "gi.repository", "procfs", "perf", "schedutils", "ethtool"):
    sys.modules.setdefault(name, Stub(name))
import tuned.logs
said = []
class Keep(logging.Handler):
    def emit(self, record):
        if record.levelno >= logging.WARNING:
            said.append(record.getMessage())
log = tuned.logs.get()
for handler in list(log.handlers):
    log.removeHandler(handler)
log.addHandler(Keep())
from tuned.profiles.loader import Loader
from tuned.profiles.locator import Locator
from tuned.profiles.factory import Factory
from tuned.profiles.merger import Merger
from tuned.profiles.variables import Variables
from tuned.plugins.plugin_net import NetTuningPlugin as Net
profile = Loader(Locator([profiles]), Factory(), Merger(), None, Variables()).load("ringwise")
out = {}
for name, unit in profile.units.items():
    options = dict(unit.options)
    if unit.type == "net":
        unknown = set(options) - set(Net._get_config_options())
        assert not unknown, unknown
        for context in ("features", "coalesce", "pause", "ring", "channels"):
            if context in options:
                found = Net._parse_config_parameters(None, options[context], context)
                assert found is not None and Net._check_parameters(Net, context, found), (context, options[context], said)
                options[context] = found
    out[name] = {"type": unit.type, "devices": unit.devices, "options": options}
assert not said, said
print(json.dumps(out))
