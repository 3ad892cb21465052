// Every bound on outside input, named, in one place; each is tested at the limit and one past it.
// Sizes are bytes unless the name says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vivace::limits {

// Model files (GGUF, safetensors).
inline constexpr uint64_t kMaxMetadataEntries = 65'536;
inline constexpr uint64_t kMaxTensors = 65'536;
inline constexpr uint64_t kMaxMetadataStringBytes = 16ull << 20;
inline constexpr uint64_t kMaxMetadataArrayItems = 1ull << 24;
inline constexpr uint64_t kMaxGgufAlignment = 1ull << 20;
inline constexpr uint64_t kMaxNameBytes = 65'535;  // metadata keys; GGUF spec
inline constexpr uint64_t kMaxTensorNameBytes = 256;
inline constexpr uint32_t kMaxTensorRank = 4;
inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr uint32_t kMaxSafetensorsRank = 8;
inline constexpr uint32_t kMaxSafetensorsDepth = 16;  // nested JSON values; the format needs 3
inline constexpr int32_t kMaxLayers = 1'024;
inline constexpr int32_t kMaxRecurrentHeads = 1'024;
inline constexpr int32_t kMaxRecurrentValueDim = 1'024;  // of a head
inline constexpr int32_t kMaxVocab = 1 << 20;
inline constexpr size_t kMaxConfigBytes = 4u << 20;       // config.json, generation_config.json
inline constexpr size_t kMaxShardIndexBytes = 32u << 20;  // model.safetensors.index.json
inline constexpr size_t kMaxModelParts = 1'024;           // files of one model
inline constexpr int32_t kMaxExperts = 4'096;
inline constexpr int64_t kMaxFfn = 1 << 22;  // width of an MLP, or of an expert
inline constexpr size_t kMaxEosTokens = 64;

// Tokenizers.
inline constexpr size_t kMaxMerges = 1u << 21;
inline constexpr size_t kMaxAddedTokenBytes = 1'024;
inline constexpr size_t kMaxTokenizerJsonBytes = 256u << 20;
inline constexpr size_t kMaxRegexBytes = 4'096;
inline constexpr size_t kMaxRegexDepth = 64;           // open groups
inline constexpr size_t kMaxRegexExpansion = 100'000;  // atoms, counted repeats written out
inline constexpr size_t kMaxRegexProgram = 1'000;      // instructions
inline constexpr uint64_t kMaxRegexLookAhead = 64;     // characters
inline constexpr size_t kMaxReplacementBytes = 512;    // of a normaliser's `Replace` or `Prepend`
inline constexpr size_t kMaxTokenizerSteps = 64;       // of one pipeline
inline constexpr double kMaxTextGrowth = 1'024;        // bytes that they make of one
inline constexpr size_t kMaxTrieTokenBytes = 1'024;    // of a token of unigrams or word pieces
inline constexpr size_t kMaxCharsmapBytes = 16u << 20;
inline constexpr size_t kMaxTemplateTokens = 64;  // before and behind the text

// Chat templates.
inline constexpr int kTemplateDepth = 200;
inline constexpr int kTemplateCallDepth = 100;
inline constexpr int64_t kTemplateSteps = 1'000'000;
inline constexpr size_t kTemplateOutputBytes = 8u << 20;
inline constexpr size_t kTemplateLiveBytes = 32u << 20;
inline constexpr size_t kTemplateSourceBytes = 1u << 20;
inline constexpr size_t kTemplateNodes = 100'000;  // statements, and expressions
inline constexpr int kTemplateEvalDepth = 400;     // nested evaluations
inline constexpr size_t kTemplateKwargs = 64;

// Constrained decoding.
inline constexpr int kMaxGrammarCompileMs = 5'000;
inline constexpr int kMaxConstraintCallMs = 1'000;        // computing, for one token of an output
inline constexpr int32_t kMaxForcedTokens = 256;          // put down at once without sampling
inline constexpr size_t kMaxGrammarBytes = 256u << 10;    // a schema, pattern or grammar
inline constexpr size_t kMaxGrammarTextBytes = 4u << 20;  // what it becomes
inline constexpr size_t kMaxGrammarChoices = 10'000;
inline constexpr int64_t kMaxGrammarRepeat = 1'000'000;  // a count in a repeat
inline constexpr size_t kMaxConstraintBytes = 1u << 30;  // what all outputs of a request may take
inline constexpr int64_t kMaxGrammarShortest = 1 << 15;  // bytes of the shortest output
inline constexpr size_t kMaxSchemaNodes = 20'000;        // schemas met while one is read
inline constexpr size_t kMaxSchemaVariants = 256;        // ways that anyOf and oneOf multiply to
inline constexpr int kMaxSchemaDepth = 64;
inline constexpr size_t kGrammarWorkerBytes = 2ull << 30;  // address space beyond the vocabulary
inline constexpr size_t kGrammarCacheEntries = 256;
inline constexpr size_t kGrammarCacheBytes = 256u << 20;

// HTTP.
inline constexpr size_t kMaxHeaderBytes = 16u << 10;
inline constexpr size_t kMaxHeaderFields = 100;
inline constexpr size_t kMaxTargetBytes = 8u << 10;
inline constexpr size_t kMaxMethodBytes = 32;
inline constexpr size_t kMaxChunkLineBytes = 256;            // size and extension of one chunk
inline constexpr size_t kMaxChunkExtensionBytes = 4u << 10;  // of all chunks of a body
inline constexpr size_t kMaxPipelinedBytes = 64u << 10;      // read ahead while an answer is due
inline constexpr size_t kMaxDiscardBytes = 2u << 20;         // read and thrown away after a refusal
inline constexpr size_t kMaxPrepBytes = 64u << 20;  // bodies waiting to be parsed, together
inline constexpr size_t kMaxBodyBytes = 16u << 20;
inline constexpr size_t kMaxReadingBytes = kMaxPrepBytes;  // bodies still coming in, together
inline constexpr int kJsonDepth = 64;
inline constexpr size_t kMaxPendingStreamBytes = 1u << 20;
inline constexpr uint64_t kMaxTlsFileBytes = 1u << 20;  // certificates, keys

// Access.
inline constexpr size_t kMaxApiKeys = 4'096;    // of one kind
inline constexpr size_t kMaxApiKeyBytes = 512;  // of one
inline constexpr size_t kMaxApiKeyFileBytes = 4u << 20;
inline constexpr size_t kMaxCorsEntries = 64;  // origins, methods or headers
inline constexpr size_t kMaxCorsEntryBytes = 256;

// What is kept of requests for /v1/requests.
inline constexpr size_t kMaxTimelines = 256;  // ended ones; beyond, the oldest go
inline constexpr size_t kMaxTimelineEvents =
    96;  // of a request; beyond, the middle is counted only

// Request parameters.
inline constexpr int64_t kMaxDeadlineMs = 86'400'000;  // a day
inline constexpr int kMaxChoices = 128;
inline constexpr size_t kMaxPrompts = kMaxChoices;  // with one choice each
inline constexpr size_t kMaxMessages = 4'096;
inline constexpr size_t kMaxTools = 128;
inline constexpr size_t kMaxDocuments = 128;
inline constexpr size_t kMaxStopStrings = 16;
inline constexpr size_t kMaxStopStringBytes = 256;
inline constexpr size_t kMaxStopTokenIds = 128;
inline constexpr size_t kMaxLogitBias = 1'024;
inline constexpr int kMaxTopLogprobs = 20;
inline constexpr int64_t kMaxLogprobEntries = 400'000;  // of an answer; alternatives count
inline constexpr size_t kMaxTokenizeBytes = 2u << 20;   // text of /tokenize
inline constexpr size_t kMaxDetokenizeTokens = 1u << 19;
inline constexpr size_t kMaxCacheSaltBytes = 128;
inline constexpr size_t kMaxUnknownParams = 64;
inline constexpr size_t kMaxBadWords = 256;      // runs of tokens; a word may be two
inline constexpr size_t kMaxBadWordTokens = 64;  // of one
inline constexpr size_t kMaxRequestIdBytes = 128;
inline constexpr size_t kMaxEchoedBytes = 64u << 10;  // of one member that an answer repeats
inline constexpr size_t kMaxEmbeddingInputs = 2'048;
inline constexpr size_t kMaxEmbeddingValues = 1u << 22;  // numbers of an answer
inline constexpr size_t kMaxScoredTexts = 1'024;         // of one list

// Tools and what a model's output says.
inline constexpr size_t kMaxToolNameBytes = 128;
inline constexpr size_t kMaxToolSchemaBytes = 256u << 10;  // of all tools of a request, as JSON
inline constexpr size_t kMaxCallHeaderBytes = 1'024;       // of a call, before its arguments
inline constexpr size_t kMaxCallBufferBytes = 256u << 10;  // of a call that cannot be streamed
inline constexpr size_t kMaxHeldSpaceBytes = 256;          // white space before a possible mark
inline constexpr int kMaxArgumentDepth = 64;               // nested values
inline constexpr int32_t kMaxReasoningTokens = 1 << 30;

// Benchmarks.
inline constexpr int32_t kMaxBenchTokens = 1 << 20;
inline constexpr int32_t kMaxBenchSequences = 4'096;
inline constexpr int32_t kMaxBenchRounds = 1'000;
inline constexpr size_t kMaxBenchCases = 64;  // numbers in one list

// Load: what a measured server may make the client hold, and what a command line may ask for.
inline constexpr int32_t kMaxLoadRequests = 1'000'000;  // of one run
inline constexpr int32_t kMaxLoadConcurrency = 65'536;
inline constexpr double kMaxLoadRate = 1e6;                // requests a second
inline constexpr size_t kMaxLoadAnswerBytes = 256u << 20;  // of one answer, its frames included
inline constexpr int64_t kMaxLoadEvents = 1 << 20;         // with content, of one answer
inline constexpr size_t kMaxLoadErrorBytes = 64u << 10;    // read of an error's body
inline constexpr size_t kMaxLoadReasonBytes = 240;         // kept of a server's sentence
inline constexpr size_t kMaxLoadTextBytes = 4u << 20;      // of an answer that the next turn needs
inline constexpr size_t kMaxLoadFetchBytes = 64u << 20;    // /v1/models, /tokenize, /metrics
inline constexpr size_t kMaxLoadSamples = 100'000;         // readings of /metrics in one run
inline constexpr int32_t kMaxLoadTurns = 1'000;            // of a conversation
inline constexpr size_t kMaxLoadHeaders = 64;              // of the command line
inline constexpr size_t kMaxLoadExtraBodyBytes = 1u << 20;
inline constexpr double kMaxLoadSeconds = 7 * 86'400;  // any time on the command line
inline constexpr size_t kMaxSimTruths = 100'000;       // requests a simulated server remembers
inline constexpr int32_t kMaxSimTokens = 1 << 20;      // max_tokens of a simulated answer

// Load: datasets and reports that users name.
inline constexpr uint64_t kMaxDatasetBytes = 4ull << 30;
inline constexpr size_t kMaxDatasetLineBytes = 16u << 20;  // or entry of an array
inline constexpr size_t kMaxDatasetRequests = 1'000'000;
inline constexpr uint64_t kMaxWorkloadBytes = 4ull << 30;  // all prompts, in memory
inline constexpr int32_t kMaxPromptTokens = 1 << 20;       // of one, asked for or in a file
inline constexpr size_t kMaxTraceHashIds = 16'384;         // of one request
inline constexpr uint64_t kMaxReportBytes = 256u << 20;
inline constexpr size_t kMaxReportRuns = 256;
inline constexpr size_t kMaxComparedReports = 8;

// Tuning.
inline constexpr size_t kMaxTuneValues = 32;       // of one flag that spans the space
inline constexpr size_t kMaxTuneSettings = 4'096;  // of the space
inline constexpr int64_t kMaxTuneSeconds = 7 * 86'400;
inline constexpr uint64_t kMaxJournalBytes = 256u << 20;
inline constexpr size_t kMaxJournalDepth = 16;  // nested JSON values

// Hubs and the cache of what came from them.
inline constexpr size_t kHubRepoPartBytes = 96;  // the hub's own bound for names
inline constexpr size_t kHubFileNameBytes = 1'024;
inline constexpr size_t kHubFiles = 20'000;  // of a repository, and entries of a cache folder
inline constexpr size_t kHubListingBytes = 16u << 20;
inline constexpr size_t kHubHeaderBytes = 64u << 10;
inline constexpr uint64_t kHubFileBytes = 1ull << 41;
inline constexpr size_t kHubTokenBytes = 4'096;
inline constexpr int kHubRedirects = 8;

// Logging.
inline constexpr size_t kMaxLogFieldBytes = 2'048;

}  // namespace vivace::limits
