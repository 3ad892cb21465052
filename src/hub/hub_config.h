// Where models come from and where they are kept: what the environment and flags decide, once.
#pragma once

#include <string>

namespace vivace::hub {

struct HubConfig {
  std::string endpoint = "https://huggingface.co";  // without a slash at the end
  std::string token;                                // empty: none
  std::string cache;                                // the folder that holds models--org--name
  bool offline = false;                             // never touch the network
  int timeout_s = 30;                               // a connection that gives nothing for so long
};

}  // namespace vivace::hub
