// GBNF, as llama.cpp's parser reads it, in the EBNF that xgrammar reads. What both take stays byte
// for byte, so that errors name the client's lines, without those that break within quotes; columns
// move only behind what was rewritten:
//
//   an empty alternative, group or rule      ""
//   .                                        the class of all characters
//   "\[", "\]", "\-"                         the character itself
//   \x41 before a further hex digit          \u0041 (xgrammar takes all the digits there are)
//   a line break within quotes or brackets   \n
//   x*?, x+*, …                              the one repeat they come to
//   rules named true, Token, 3d, …           _true, _Token, _3d
//
// Tokens (<[id]>, <text>) and repeats stacked with counts ("a"{2}{3}, [a]{2}*) are left for
// xgrammar to refuse. Texts of xgrammar's own EBNF stay as they are, but for a name with a dot that
// no rule has. Pure; linear.
#pragma once

#include <string>
#include <string_view>

namespace vivace::grammar {

std::string GbnfToEbnf(std::string_view gbnf);

}  // namespace vivace::grammar
