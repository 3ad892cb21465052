# One folder of src/ is one library, `vivace_<name>`, made of its *.cc files, and one test program,
# `<name>_test`, made of its *_test.cc files. A new file needs no edit here. TIMED: what it tests are times, so nothing
# else is tested meanwhile.

add_library(vivace_flags INTERFACE)
target_include_directories(vivace_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
# x86-64-v2 is the floor every tier but the kernels' own files is built for.
# -Wrestrict is wrong about std::string in GCC 12 (PR 105651).
target_compile_options(vivace_flags INTERFACE -march=x86-64-v2 -Wall -Wextra -Werror -Wno-psabi
                                              -Wno-restrict -fno-omit-frame-pointer)
target_compile_definitions(vivace_flags INTERFACE VIVACE_VERSION="${VIVACE_VERSION}"
                                                  BOOST_ALLOW_DEPRECATED_HEADERS)
if(VIVACE_SANITIZE)
  # GCC 12 warns of code that a sanitizer has changed; the other builds have no warnings.
  target_compile_options(vivace_flags INTERFACE -Wno-error)
endif()
if(VIVACE_SANITIZE STREQUAL "address")
  # Null and bad objects fault under the address sanitizer as well, and only VIVACE_BYTE_FOLDERS turn bytes into
  # objects: checks of every access for these took more than half of the time to compile.
  target_compile_options(vivace_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
                                                -fno-sanitize=null,vptr,object-size,alignment)
  target_link_options(vivace_flags INTERFACE -fsanitize=address,undefined)
elseif(VIVACE_SANITIZE STREQUAL "thread")
  target_compile_options(vivace_flags INTERFACE -fsanitize=thread)
  target_link_options(vivace_flags INTERFACE -fsanitize=thread)
endif()
target_link_libraries(vivace_flags INTERFACE Threads::Threads fmt::fmt tl::expected)

set(VIVACE_BYTE_FOLDERS formats quant kernels engine)

# Tests are compiled once and run for seconds: what they call is optimised and checked for undefined behaviour,
# they are not. (A test file of gmock took GCC 20 s, and minutes with these checks.)
add_library(vivace_test_flags INTERFACE)
target_link_libraries(vivace_test_flags INTERFACE vivace_test_paths)
target_compile_options(vivace_test_flags INTERFACE -O1)
if(VIVACE_SANITIZE STREQUAL "address")
  target_compile_options(vivace_test_flags INTERFACE -fno-sanitize=undefined)
endif()

# Headers are most of what the compiler reads: libraries are compiled eight files at a time, and share what most of
# them read, precompiled; tests share it too. The dev preset does neither, for changes of one file, and so sees to it
# that each file includes what it uses.
option(VIVACE_UNITY "Compile libraries eight files at a time, with precompiled headers" ON)

# Headers that targets of the same flags share by vivace_precompile. `ARGN`: headers and what they are linked with.
function(vivace_shared_headers name)
  cmake_parse_arguments(ARG "" "" "LINK;HEADERS" ${ARGN})
  if(VIVACE_UNITY)
    set(nothing ${CMAKE_BINARY_DIR}/${name}.cc)
    file(CONFIGURE OUTPUT ${nothing} CONTENT "")
    add_library(${name} OBJECT ${nothing})
    target_link_libraries(${name} PRIVATE vivace_flags Boost::json ${ARG_LINK})
    target_precompile_headers(${name} PRIVATE ${ARG_HEADERS} <algorithm> <functional> <memory> <optional> <span> <string>
                              <string_view> <unordered_map> <vector> <boost/json.hpp> <fmt/format.h> <tl/expected.hpp>)
  endif()
endfunction()
function(vivace_precompile target headers)
  if(VIVACE_UNITY)
    target_precompile_headers(${target} REUSE_FROM ${headers})
  endif()
endfunction()
function(vivace_share target)
  if(VIVACE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # An included file's parts are seen nowhere else all the same; and GCC 12, which then inlines more, takes what
    # other kinds of a std::variant hold for uninitialised. What it says wrongly of std::string (PR 105329, 105651) is
    # no longer known to be a system header's once that is precompiled.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage -Wno-maybe-uninitialized -Wno-array-bounds
                                             -Wno-stringop-overflow)
  endif()
  vivace_precompile(${target} vivace_headers)
endfunction()
vivace_shared_headers(vivace_headers)
if(VIVACE_TESTS)
  vivace_shared_headers(vivace_test_headers LINK vivace_test_flags GTest::gmock HEADERS <gmock/gmock.h> <gtest/gtest.h>)
endif()

function(vivace_module name)
  cmake_parse_arguments(ARG "OWN_FLAGS;TIMED" "" "DEPS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(sources)
    add_library(vivace_${name} STATIC ${sources})
    target_link_libraries(vivace_${name} PUBLIC vivace_flags ${ARG_DEPS})
    if(VIVACE_SANITIZE STREQUAL "address" AND name IN_LIST VIVACE_BYTE_FOLDERS)
      target_compile_options(vivace_${name} PRIVATE -fsanitize=alignment)
    endif()
    if(NOT ARG_OWN_FLAGS)
      vivace_share(vivace_${name})
    endif()
  else()
    add_library(vivace_${name} INTERFACE)
    target_link_libraries(vivace_${name} INTERFACE vivace_flags ${ARG_DEPS})
  endif()
  if(VIVACE_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE vivace_${name} vivace_test_flags GTest::gmock_main)
    vivace_precompile(${name}_test vivace_test_headers)
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 1200)
    if(ARG_TIMED)
      set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
  endif()
endfunction()
