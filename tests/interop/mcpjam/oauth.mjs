// Runs MCPJam's checks of OAuth against the server at a URL, in one revision and way to register.
//
// It prints the address that a person has to open, and fails if a check does.

import { OAuthConformanceTest } from '@mcpjam/sdk';

const [serverUrl, protocolVersion, registrationStrategy, clientId] = process.argv.slice(2);
const test = new OAuthConformanceTest({
  serverUrl,
  protocolVersion,
  registrationStrategy,
  auth: { mode: 'interactive', openUrl: async (url) => console.log(url) },
  client: { cimd: { clientIdMetadataUrl: clientId }, preregistered: { preregistered: { clientId } } }[registrationStrategy],
  // The document is on the small internet of the test, which this program cannot reach.
  fetchFn: (url, options) =>
    String(url) === clientId && registrationStrategy === 'cimd'
      ? Response.json({ client_id: clientId, client_name: 'MCPJam', redirect_uris: ['http://127.0.0.1/callback'] })
      : fetch(url, options),
  verification: { listTools: true },
  oauthConformanceChecks: true,
});
const result = await test.run();
for (const { step, status, error } of result.steps) console.log(step, status, error?.message ?? '');
console.log(result.summary);
process.exit(result.passed && result.verification.listTools.passed ? 0 : 1);
