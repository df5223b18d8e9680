-- SPDX-License-Identifier: Apache-2.0
-- wrk: a request as a router sends it, its room at the end, another one each time.
local prompt = string.rep("why is the room pinned? ", 160)
local n = os.time() * 1000000

wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"

function request()
	n = n + 1
	return wrk.format(nil, nil, nil, '{"text": "' .. prompt
		.. '", "bootstrap_host": "10.0.0.9", "bootstrap_port": 8998, "bootstrap_room": '
		.. string.format("%d", n) .. "}")
end
