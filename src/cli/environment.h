// The only environment variables the program reads, and only for defaults: where a user's caches
// are (the XDG base directory rules), what Hugging Face's own programs go by, and keys, the
// server's and those of servers that are measured, which a command line would show to everyone on
// the machine. (libcurl reads the proxy variables by itself.)
#pragma once

#include <string>

#include "hub/hub_config.h"

namespace vivace::cli {

// $XDG_CACHE_HOME/vivace, else $HOME/.cache/vivace; empty if neither names an absolute path.
std::string UserCacheFolder();

// HF_ENDPOINT; HF_HUB_CACHE, else HF_HOME/hub, else $XDG_CACHE_HOME or ~/.cache, huggingface/hub;
// HF_TOKEN, else the file HF_TOKEN_PATH, else HF_HOME/token; HF_HUB_OFFLINE. A token with what no
// token has is left out.
hub::HubConfig HubFromEnvironment();

// VIVACE_API_KEY, else VLLM_API_KEY: what our server asks for, and what `chat` says to one.
// VIVACE_ADMIN_API_KEY. Empty: none.
std::string ApiKeyOfEnvironment();
std::string AdminKeyOfEnvironment();
// OPENAI_API_KEY, for servers of others. Empty: none.
std::string OpenAiKeyOfEnvironment();

}  // namespace vivace::cli
