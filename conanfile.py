import os
import re

from conan import ConanFile
from conan.tools.files import copy, load
from conan.tools.layout import basic_layout


class Logitstat(ConanFile):
    name = "logitstat"
    description = "Header-only C++20 statistics for comparing a language model's logits across a change"
    license = "MIT"
    topics = ("statistics", "language-models", "logits", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"with_io": [True, False], "with_tbb": [True, False]}
    default_options = {"with_io": True, "with_tbb": False}
    exports_sources = "include/*", "LICENSE"
    no_copy_source = True

    def set_version(self):
        version = load(self, os.path.join(self.recipe_folder, "include", "logitstat", "version.hpp"))
        self.version = re.search(r'VERSION_STRING "([^"]+)"', version).group(1)

    def layout(self):
        basic_layout(self)

    def requirements(self):
        self.requires("boost/[>=1.74 <2]", options={"header_only": True})
        self.requires("eigen/[>=3.4 <4]")
        self.requires("xsimd/[>=8.1 <14]")
        if self.options.with_io:
            self.requires("nlohmann_json/[>=3.11 <4]")
        if self.options.with_tbb:
            self.requires("onetbb/[>=2021]")

    def package_id(self):
        self.info.clear()

    def package(self):
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        copy(self, "*.hpp", src=os.path.join(self.source_folder, "include"),
             dst=os.path.join(self.package_folder, "include"))

    def package_info(self):
        def component(name, target, requires):
            part = self.cpp_info.components[name]
            part.set_property("cmake_target_name", f"logitstat::{target}")
            part.bindirs, part.libdirs, part.requires = [], [], requires
            return part

        core = component("core", "logitstat", ["boost::headers", "eigen::eigen", "xsimd::xsimd"])
        if self.settings.os in ("Linux", "FreeBSD"):
            core.system_libs = ["pthread"]
        if self.options.with_io:
            for name in ("io", "json"):
                component(name, name, ["core", "nlohmann_json::nlohmann_json"])
        if self.options.with_tbb:
            component("tbb", "tbb", ["core", "onetbb::onetbb"]).defines = ["LOGITSTAT_TBB"]
