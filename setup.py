"""The extension module is CMake's to build: setuptools only asks for it. See docs/guide/python-install.md."""
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "build" / "pip"  # all that setuptools leaves behind, where git and the other builds do not look


class CMakeBuild(build_ext):
    """CMAKE_ARGS: more for CMake, e.g. -DMPI_CXX_COMPILER=…. HEARSAY_BUILD: a folder where CMake has built the module
    already, for this Python."""

    def build_extension(self, ext):
        built = os.environ.get("HEARSAY_BUILD")
        build = Path(built).resolve() if built else self.build()
        modules = list((build / "python" / "hearsay").glob("_core.*.so"))
        if len(modules) != 1:
            raise SystemExit(f"{build}/python/hearsay has {len(modules)} modules _core.*.so, not one")
        target = Path(self.get_ext_fullpath(ext.name)).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        self.copy_file(str(modules[0]), str(target))

    def build(self):
        build = Path(self.build_temp).resolve()
        switches = {
            "CMAKE_BUILD_TYPE": "Release",
            "HEARSAY_PYTHON": "ON",
            "HEARSAY_TORCH": "OFF",
            "HEARSAY_CUDA": "OFF",
            "HEARSAY_BUILD_APPS": "OFF",
            "HEARSAY_BUILD_TESTS": "OFF",
            "Python_EXECUTABLE": sys.executable,
        }
        pybind11 = importlib.util.find_spec("pybind11")
        if pybind11 is not None:  # the index's, or else CMake finds the system's
            switches["pybind11_DIR"] = importlib.import_module("pybind11").get_cmake_dir()
        options = [f"-D{key}={value}" for key, value in switches.items()]
        options += shlex.split(os.environ.get("CMAKE_ARGS", ""))
        subprocess.run(["cmake", "-G", "Ninja", "-S", str(ROOT), "-B", str(build), *options], check=True)
        subprocess.run(["cmake", "--build", str(build), "--target", "hearsay_python"], check=True)
        return build


version = re.search(r"project\(hearsay VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
BUILD.mkdir(parents=True, exist_ok=True)
for collected in [*BUILD.glob("lib*"), *BUILD.glob("*.egg-info")]:  # of an earlier version, which had other files
    shutil.rmtree(collected)
analysis = find_packages("analysis", include=["hearsay_analysis", "hearsay_analysis.*"])
setup(
    version=version,
    packages=["hearsay", *analysis],
    package_dir={"hearsay": "python/hearsay", "hearsay_analysis": "analysis/hearsay_analysis"},
    package_data={"hearsay": ["py.typed", "*.pyi"], "hearsay_analysis": ["page/*.css"]},
    ext_modules=[Extension("hearsay._core", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
    options={"build": {"build_base": str(BUILD)}, "egg_info": {"egg_base": str(BUILD)}},
    zip_safe=False,
)
