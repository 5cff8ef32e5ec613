// The driver over @modelcontextprotocol/sdk 1.x, which speaks the handshake revisions.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

import { ASKABLE, announcements, run, wayTo } from './driver.mjs';

const QUESTIONS = [ElicitRequestSchema, CreateMessageRequestSchema, ListRootsRequestSchema];

const TRANSPORTS = { stdio: StdioClientTransport, http: StreamableHTTPClientTransport, sse: SSEClientTransport };

await run(async (server, mode, answer) => {
  const client = new Client({ name: 'interop', version: '1' }, { capabilities: answer ? ASKABLE : {} });
  for (const schema of answer ? QUESTIONS : []) {
    client.setRequestHandler(schema, ({ method, params }) => answer(method, params));
  }
  const announced = announcements();
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => announced.add(params.uri));
  const transport = wayTo(server, TRANSPORTS);
  const pass = transport.setProtocolVersion?.bind(transport);
  let revision;
  transport.setProtocolVersion = (settled) => {
    revision = settled;
    pass?.(settled);
  };
  await client.connect(transport);
  return {
    client,
    revision,
    announced,
    subscribe: (uri) => subscribe(client, uri),
    callWith: (params, options) => client.callTool(params, undefined, options),
  };
});

async function subscribe(client, uri) {
  await client.subscribeResource({ uri });
  return () => client.unsubscribeResource({ uri });
}
