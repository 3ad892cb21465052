# xgrammar (Apache-2.0), the library behind constrained decoding, from the sources that `./dev setup`
# gets from PyPI and checks. The target `xgrammar` is one archive under build/xgrammar that all
# presets share: it takes minutes to build, and sanitizers have nothing to say about it.
set(VIVACE_XGRAMMAR_DIR ${PROJECT_SOURCE_DIR}/.deps/xgrammar-0.2.9
    CACHE PATH "the unpacked source package of xgrammar 0.2.9")
if(NOT EXISTS ${VIVACE_XGRAMMAR_DIR}/cpp/grammar_compiler.cc)
  message(FATAL_ERROR "xgrammar's sources are not in ${VIVACE_XGRAMMAR_DIR}: run `./dev setup`, which gets them "
                      "from PyPI (xgrammar 0.2.9, the source package), or name their folder with "
                      "-DVIVACE_XGRAMMAR_DIR=...")
endif()

set(xgrammar_build ${PROJECT_SOURCE_DIR}/build/xgrammar)
set(xgrammar_archive ${xgrammar_build}/libxgrammar.a)
add_custom_command(
  OUTPUT ${xgrammar_archive}
  COMMAND ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR}/cmake/xgrammar -B ${xgrammar_build} -G Ninja
          -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
          -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
          -DXGRAMMAR_DIR=${VIVACE_XGRAMMAR_DIR}
  COMMAND ${CMAKE_COMMAND} --build ${xgrammar_build}
  DEPENDS ${PROJECT_SOURCE_DIR}/cmake/xgrammar/CMakeLists.txt
  COMMENT "Building xgrammar, once for all presets"
  USES_TERMINAL VERBATIM)
add_custom_target(xgrammar_build DEPENDS ${xgrammar_archive})

# Its inner headers too: grammar/ walks the compiled automata (src/grammar/README.md).
add_library(xgrammar STATIC IMPORTED)
add_dependencies(xgrammar xgrammar_build)
set_target_properties(xgrammar PROPERTIES IMPORTED_LOCATION ${xgrammar_archive})
target_include_directories(xgrammar SYSTEM INTERFACE
  ${VIVACE_XGRAMMAR_DIR}/include ${VIVACE_XGRAMMAR_DIR}/cpp
  ${VIVACE_XGRAMMAR_DIR}/3rdparty/picojson ${VIVACE_XGRAMMAR_DIR}/3rdparty/dlpack/include)
target_compile_definitions(xgrammar INTERFACE XGRAMMAR_ENABLE_CPPTRACE=0 XGRAMMAR_ENABLE_INTERNAL_CHECK=0)
