// Logs in to the server at a URL with either TypeScript SDK, and calls a tool.
//
// It prints the address that a person has to open, and waits for the browser at its own redirect.

import { once } from 'node:events';
import { createServer } from 'node:http';

const [sdk, url] = process.argv.slice(2);
const v1 = '@modelcontextprotocol/sdk/client';
const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
  sdk === 'v1'
    ? {
        ...(await import(`${v1}/index.js`)),
        ...(await import(`${v1}/streamableHttp.js`)),
        ...(await import(`${v1}/auth.js`)),
      }
    : await import('@modelcontextprotocol/client');

const callback = createServer();
callback.listen(0, '127.0.0.1');
await once(callback, 'listening');
const redirectUrl = `http://127.0.0.1:${callback.address().port}/callback`;
const kept = {};
const provider = {
  redirectUrl,
  clientMetadata: {
    client_name: `TypeScript SDK ${sdk}`,
    redirect_uris: [redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  clientInformation: () => kept.client,
  saveClientInformation: client => (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: tokens => (kept.tokens = tokens),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: verifier => (kept.verifier = verifier),
  discoveryState: () => kept.discovery,
  saveDiscoveryState: discovery => (kept.discovery = discovery),
  redirectToAuthorization: address => console.log(String(address)),
};

const connect = async transport => {
  const client = new Client({ name: 'login', version: '1' });
  await client.connect(transport);
  return client;
};
const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
const arrival = once(callback, 'request');
try {
  await connect(transport);
  throw new Error('no login was needed');
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
const [request, response] = await arrival;
response.end('back in the program');
const { searchParams } = new URL(request.url, redirectUrl);
await transport.finishAuth(sdk === 'v1' ? searchParams.get('code') : searchParams);

const client = await connect(
  new StreamableHTTPClientTransport(new URL(url), { authProvider: provider }),
);
const reply = await client.callTool({ name: 'read_graph', arguments: {} });
await client.close();
console.log(JSON.stringify(reply));
process.exit(reply.isError ? 1 : 0);
