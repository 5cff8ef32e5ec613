// The driver over @modelcontextprotocol/sdk 1.x, which speaks the handshake revisions.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

import { announcements, run } from './driver.mjs';

await run(async ([command, ...args]) => {
  const client = new Client({ name: 'interop', version: '1' });
  const announced = announcements();
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => announced.add(params.uri));
  const transport = new StdioClientTransport({ command, args });
  let revision;
  transport.setProtocolVersion = (settled) => (revision = settled);
  await client.connect(transport);
  return { client, revision, announced, subscribe: (uri) => subscribe(client, uri) };
});

async function subscribe(client, uri) {
  await client.subscribeResource({ uri });
  return () => client.unsubscribeResource({ uri });
}
