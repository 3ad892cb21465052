// The one door to Asio: for the .cc files of this folder and their private headers, nobody else.
#pragma once

// ThreadSanitizer does not model fences (and g++ refuses them under it). One thread runs our loop
// and its queue is locked, so the fences around handlers order nothing.
#if defined(__SANITIZE_THREAD__)
#define BOOST_ASIO_DISABLE_FENCED_BLOCK
#endif

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
