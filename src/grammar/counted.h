// Strings of a counted length, decided by the count.
//
// xgrammar decides most tokens of a mask when a grammar is compiled; what depends on a count it
// tries anew for each mask, and in a string with a length those are thousands of tokens. Its own
// remedy covers sets of characters without escapes only. So a repeat of one character, escapes and
// all, is written as one counted edge of the automaton (CountedRest), and tokens go into tables
// by how many characters they take (DecideByCount), which xgrammar's matcher looks up by the count
// at hand (compiled_grammar_impl.h: AdaptiveTokenMask::repeat_interior_bitsets).
//
// xgrammar writes out a repeat of up to 128 instead of making an edge of it. Counts are therefore
// written kCountOffset too large and set right before the masks are made (SetCounts, MakeMasks).
//
// Pure functions; one thread per grammar. Relies on inner headers, as automaton.h does.
#pragma once

#include <xgrammar/xgrammar.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace vivace::grammar {

// Whether a grammar's text has such strings.
bool HasCountedStrings(std::string_view grammar);

// The body of a rule: `min` to `max` (kUnbounded: no most) times what `character` matches, and the
// quote that ends the string. `character` is a regular expression as xgrammar has them, of which no
// match begins with a quote or with another match.
std::string CountedRest(std::string_view character, int64_t min, int64_t max);

// For a grammar that was compiled without masks: sets its counts right and makes its masks.
void SetCountsAndMakeMasks(xgrammar::CompiledGrammar* compiled);

// Puts the tokens that a count alone decides into tables. Those of repeats that are no edges, and
// of repeated things that are not told apart by their bytes, stay to be tried.
void DecideByCount(xgrammar::CompiledGrammar* compiled);

}  // namespace vivace::grammar
