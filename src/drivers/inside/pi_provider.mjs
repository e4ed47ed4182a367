// SPDX-License-Identifier: MIT
//
// An extension of pi: the turn's model, whose address and key are in the turn's
// environment and in no file.
//
// And the MCP servers that the user brought, as tools of their own: what is in
// ~/.pi/agent/mcp.json is the sandbox's.
//
// The limits steer when pi compacts a session and how long an answer it asks for:
// what today's models all take.
import { readFileSync } from "node:fs";

function registerServers(pi, path) {
	const { mcpServers } = JSON.parse(readFileSync(path, "utf8"));
	for (const [name, server] of Object.entries(mcpServers))
		pi.registerMcpServer(name, { exposure: "direct", ...server });
}

export default function (pi) {
	if (process.env.SANDBOX_AGENT_MCP)
		registerServers(pi, process.env.SANDBOX_AGENT_MCP);
	const model = process.env.SANDBOX_AGENT_MODEL;
	if (!model)
		return; // a login of the user's
	pi.registerProvider("sandbox", {
		name: "sandbox-agent",
		baseUrl: process.env.SANDBOX_AGENT_MODEL_URL,
		apiKey: "$SANDBOX_AGENT_MODEL_KEY",
		api: "openai-completions",
		models: [{
			id: model,
			name: model,
			reasoning: true,
			input: ["text", "image"],
			cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
			contextWindow: 128000,
			maxTokens: 16384,
		}],
	});
}
