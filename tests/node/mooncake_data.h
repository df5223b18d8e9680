/* SPDX-License-Identifier: Apache-2.0 */
/* What MultiTransport and TransferEngine share: the mover of bytes, and the open segments. */
#ifndef NODE_MOONCAKE_DATA_H
#define NODE_MOONCAKE_DATA_H

#include "engine.h"
#include "mooncake.h"

struct mooncake::MultiTransport::Data {
	Engine engine{"mooncake"};
	std::vector<std::string> segments; /* by their id */
};

#endif
