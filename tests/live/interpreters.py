# SPDX-License-Identifier: Apache-2.0
"""The CPython interpreters of this machine that silentpin says it can read, and tests made for each of them.

Looked for in /usr/bin, in pyenv's versions and as python3.N in PATH. A machine may have one only: which
supported versions were not found is told once in a test run, and no test is skipped for it.
"""
import functools
import glob
import json
import os
import shutil
import subprocess

SUPPORTED = ((3, 10), (3, 11), (3, 12), (3, 13))
_ASK = ("import json, os, platform, sys, sysconfig; print(json.dumps({"
        "'path': os.path.realpath(sys.executable), 'version': platform.python_version(),"
        " 'kind': platform.python_implementation(), 'prefix': sys.prefix,"
        " 'free': bool(sysconfig.get_config_var('Py_GIL_DISABLED')),"
        " 'shared': bool(sysconfig.get_config_var('Py_ENABLE_SHARED'))}))")


class Interpreter:
    def __init__(self, told):
        self.path, self.version, self.prefix = told["path"], told["version"], told["prefix"]
        self.free_threaded, self.shared = told["free"], told["shared"]
        self.minor = tuple(int(n) for n in self.version.split(".")[:2])
        origin = "system" if self.path.startswith("/usr/bin/") else "pyenv" if "pyenv" in self.path else "path"
        self.word = "_".join(self.version.split(".")) + "_" + origin

    def __repr__(self):
        return f"{self.version} ({self.path})"

    def libpython(self):
        """The shared library that holds the interpreter; None: it is in the program itself."""
        found = glob.glob(os.path.join(self.prefix, "lib", f"libpython3.{self.minor[1]}.so.*"))
        return found[0] if self.shared and found else None


def _candidates():
    yield "/usr/bin/python3"
    roots = [os.environ.get("PYENV_ROOT"), os.path.expanduser("~/.pyenv"),
             os.path.expanduser(f"~{os.environ.get('SUDO_USER', '')}/.pyenv")]
    if shutil.which("pyenv"):
        p = subprocess.run(["pyenv", "root"], stdout=subprocess.PIPE, text=True, check=False)
        roots.insert(0, p.stdout.strip())
    for root in filter(None, roots):
        yield from sorted(glob.glob(os.path.join(root, "versions", "3.*", "bin", "python3")))
    for minor in range(10, 16):
        yield shutil.which(f"python3.{minor}")


def _ask(path):
    """What an interpreter says of itself; None: there is none, or (a shim) it is not to be had."""
    if not path or not os.path.exists(path):
        return None
    p = subprocess.run([path, "-I", "-S", "-c", _ASK], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                       stdin=subprocess.DEVNULL, timeout=60, check=False)
    try:
        return json.loads(p.stdout) if p.returncode == 0 else None
    except ValueError:
        return None


@functools.lru_cache(maxsize=None)
def every():
    """All CPythons found, whatever silentpin can do with them."""
    found = {}
    for told in map(_ask, _candidates()):
        if told and told["kind"] == "CPython":
            found.setdefault(told["path"], Interpreter(told))
    return tuple(found.values())


def supported():
    return [i for i in every() if i.minor in SUPPORTED and not i.free_threaded]


def missing():
    return [f"3.{minor}" for _, minor in SUPPORTED if (3, minor) not in {i.minor for i in supported()}]


@functools.lru_cache(maxsize=None)
def tell():
    """Once in a run of the tests: which interpreters they are made for."""
    print(f"interpreters: {', '.join(map(repr, supported()))}; supported but not on this machine: "
          f"{', '.join(missing()) or 'none'}", flush=True)


def for_each_interpreter(cls):
    """A class decorator: each method `each_X(self, py)` becomes one test for every interpreter."""
    for name in [n for n in vars(cls) if n.startswith("each_")]:
        method = getattr(cls, name)
        for py in supported():
            def test(self, method=method, py=py):
                method(self, py)

            test.__doc__ = method.__doc__
            test.__name__ = f"test_{name[len('each_'):]}_{py.word}"
            test.__qualname__ = f"{cls.__qualname__}.{test.__name__}"
            setattr(cls, test.__name__, test)
    return cls
