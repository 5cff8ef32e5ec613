// The driver over @modelcontextprotocol/client 2.x: `legacy` shakes hands, `auto` asks the server which
// revisions it speaks, and a revision is used as it is.

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { ASKABLE, QUESTIONS, announcements, run, wayTo } from './driver.mjs';

const NAMED_MODES = ['legacy', 'auto'];
const TRANSPORTS = { stdio: StdioClientTransport, http: StreamableHTTPClientTransport, sse: SSEClientTransport };

await run(async (server, mode, answer) => {
  const negotiation = NAMED_MODES.includes(mode) ? mode : { pin: mode };
  const capabilities = answer ? ASKABLE : {};
  const options = { capabilities, versionNegotiation: { mode: negotiation } };
  const client = new Client({ name: 'interop', version: '2' }, options);
  for (const method of answer ? QUESTIONS : []) {
    client.setRequestHandler(method, async ({ params }) => answer(method, params));
  }
  const announced = announcements();
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => announced.add(params.uri));
  await client.connect(wayTo(server, TRANSPORTS));
  const subscribe = mode === 'legacy' ? subscribeByRequest : listen;
  return {
    client,
    revision: client.getNegotiatedProtocolVersion(),
    announced,
    subscribe: (uri) => subscribe(client, uri),
    callWith: (params, options) => client.callTool(params, options),
  };
});

async function subscribeByRequest(client, uri) {
  await client.subscribeResource({ uri });
  return () => client.unsubscribeResource({ uri });
}

async function listen(client, uri) {
  const subscription = await client.listen({ resourceSubscriptions: [uri] });
  return () => subscription.close();
}
