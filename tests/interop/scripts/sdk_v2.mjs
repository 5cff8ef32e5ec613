// The driver over @modelcontextprotocol/client 2.x: `legacy` shakes hands, `auto` asks the server which
// revisions it speaks, and a revision is used as it is.

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { announcements, run } from './driver.mjs';

const NAMED_MODES = ['legacy', 'auto'];

await run(async ([command, ...args], mode) => {
  const negotiation = NAMED_MODES.includes(mode) ? mode : { pin: mode };
  const client = new Client({ name: 'interop', version: '2' }, { versionNegotiation: { mode: negotiation } });
  const announced = announcements();
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => announced.add(params.uri));
  await client.connect(new StdioClientTransport({ command, args }));
  const subscribe = mode === 'legacy' ? subscribeByRequest : listen;
  return {
    client,
    revision: client.getNegotiatedProtocolVersion(),
    announced,
    subscribe: (uri) => subscribe(client, uri),
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
