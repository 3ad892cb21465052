# Run as a script: writes OUTPUT, a C++ file with the FILES' bytes as vivace::server::kWebFiles.
#   cmake -DOUTPUT=... -DFILES="a;b" -P Embed.cmake
set(table "")
set(arrays "")
set(index 0)
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "constexpr char kFile${index}[] = {${bytes}};\n")
  string(APPEND table "    {\"${name}\", {kFile${index}, sizeof(kFile${index})}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUTPUT} "// Made from web/ by cmake/Embed.cmake.
#include \"server/web/web_files.h\"

namespace vivace::server {
namespace {
${arrays}constexpr WebFile kFiles[] = {
${table}};
}  // namespace

std::span<const WebFile> WebFiles() { return kFiles; }

}  // namespace vivace::server
")
