# The stand-in node: build/node/libnixl.so and its Python binding. Included by the main Makefile.
NODE_B := $(B)/node
NODE_PY ?= /usr/bin/python3
NODE_EXT := $(shell $(NODE_PY) -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))' 2>/dev/null)
NODE_PYINC := $(shell $(NODE_PY) -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null)
NODE_CXX ?= g++
NODE_CXXFLAGS := -std=c++17 -O2 -fPIC -Wall -Wextra -Wshadow -Wformat=2 -Wno-missing-field-initializers -Werror -pthread
NODE_HDRS := $(wildcard tests/node/*.h)

.PHONY: node
node: $(NODE_B)/libnixl.so $(NODE_B)/_nixl_standin$(NODE_EXT)
	@:

$(NODE_B)/%.o: tests/node/%.cc $(NODE_HDRS)
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(NODE_CXX) $(NODE_CXXFLAGS) $(if $(filter binding,$*),-I$(NODE_PYINC)) -c $< -o $@

# Stripped, as the library of a release is: only .dynsym is left for a prober.
$(NODE_B)/libnixl.so: $(NODE_B)/agent.o $(NODE_B)/engine.o $(NODE_B)/hooks.o
	$(call say,LD,$@)
	$(Q)$(NODE_CXX) -shared -Wl,-soname,libnixl.so -Wl,-z,defs -s -pthread $^ -o $@

$(NODE_B)/_nixl_standin$(NODE_EXT): $(NODE_B)/binding.o $(NODE_B)/libnixl.so
	$(call say,LD,$@)
	$(Q)$(NODE_CXX) -shared -s -pthread $< -L$(NODE_B) -lnixl -Wl,-rpath,'$$ORIGIN' -o $@
