// Prints docs/parameters.md: `./dev docs`.
#include <cstdio>

#include "server/params/table.h"

int main() { std::fputs(vivace::server::ParamTableMarkdown().c_str(), stdout); }
