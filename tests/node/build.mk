# The stand-in node: build/node/libnixl.so and its Python binding, and the stand-in of Mooncake's
# transfer engine. Included by the main Makefile.
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
	$(Q)$(NODE_CXX) $(NODE_CXXFLAGS) $(if $(filter binding mooncake_py,$*),-I$(NODE_PYINC)) -c $< -o $@

# Stripped, as the library of a release is: only .dynsym is left for a prober.
$(NODE_B)/libnixl.so: $(NODE_B)/agent.o $(NODE_B)/engine.o $(NODE_B)/hooks.o
	$(call say,LD,$@)
	$(Q)$(NODE_CXX) -shared -Wl,-soname,libnixl.so -Wl,-z,defs -s -pthread $^ -o $@

$(NODE_B)/_nixl_standin$(NODE_EXT): $(NODE_B)/binding.o $(NODE_B)/libnixl.so
	$(call say,LD,$@)
	$(Q)$(NODE_CXX) -shared -s -pthread $< -L$(NODE_B) -lnixl -Wl,-rpath,'$$ORIGIN' -o $@

# The same in newer/, with what sources newer than 1.4 have.
node: $(NODE_B)/newer/libnixl.so $(NODE_B)/newer/_nixl_standin$(NODE_EXT)

$(NODE_B)/newer/%.o: tests/node/%.cc $(NODE_HDRS)
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(NODE_CXX) $(NODE_CXXFLAGS) -std=c++20 -DNIXL_SPAN $(if $(filter binding,$*),-I$(NODE_PYINC)) -c $< -o $@

$(NODE_B)/newer/libnixl.so: $(NODE_B)/newer/agent.o $(NODE_B)/engine.o $(NODE_B)/hooks.o
	$(call say,LD,$@)
	$(Q)$(NODE_CXX) -shared -Wl,-soname,libnixl.so -Wl,-z,defs -s -pthread $^ -o $@

$(NODE_B)/newer/_nixl_standin$(NODE_EXT): $(NODE_B)/newer/binding.o $(NODE_B)/newer/libnixl.so
	$(call say,LD,$@)
	$(Q)$(NODE_CXX) -shared -s -pthread $< -L$(NODE_B)/newer -lnixl -Wl,-rpath,'$$ORIGIN' -o $@

# Mooncake: the engine within its Python module, as in the wheel, in today's layouts and, in old/, in
# those of the releases before 0.3.9; and a library with the C names.
MOONCAKE := mooncake mooncake_engine mooncake_hooks
MOONCAKE_SO := $(NODE_B)/mooncake/engine.so $(NODE_B)/old/mooncake/engine.so $(NODE_B)/libtransfer_engine.so
node: $(MOONCAKE_SO)

$(NODE_B)/old/%.o: tests/node/%.cc $(NODE_HDRS)
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(NODE_CXX) $(NODE_CXXFLAGS) -DMOONCAKE_OLD $(if $(filter mooncake_py,$*),-I$(NODE_PYINC)) -c $< -o $@

$(NODE_B)/mooncake/engine.so: $(MOONCAKE:%=$(NODE_B)/%.o) $(NODE_B)/mooncake_py.o $(NODE_B)/engine.o
$(NODE_B)/old/mooncake/engine.so: $(MOONCAKE:%=$(NODE_B)/old/%.o) $(NODE_B)/old/mooncake_py.o $(NODE_B)/engine.o
$(NODE_B)/libtransfer_engine.so: $(MOONCAKE:%=$(NODE_B)/%.o) $(NODE_B)/mooncake_c.o $(NODE_B)/engine.o
$(MOONCAKE_SO): tests/node/mooncake.map
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(NODE_CXX) -shared -s -pthread -Wl,--version-script=tests/node/mooncake.map $(filter %.o,$^) -o $@

# The library as a build that hides its C++ symbols has it, and a program of its C names.
node: $(NODE_B)/hidden/libtransfer_engine.so $(NODE_B)/mooncake_app
$(NODE_B)/hidden/libtransfer_engine.so: $(MOONCAKE:%=$(NODE_B)/%.o) $(NODE_B)/mooncake_c.o $(NODE_B)/engine.o tests/node/mooncake_c.map
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(NODE_CXX) -shared -s -pthread -Wl,--version-script=tests/node/mooncake_c.map $(filter %.o,$^) -o $@
$(NODE_B)/mooncake_app: $(NODE_B)/mooncake_app.o
	$(call say,LD,$@)
	$(Q)$(NODE_CXX) $< -ldl -o $@
