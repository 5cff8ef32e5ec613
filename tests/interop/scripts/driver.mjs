// Plays the conversation asked for on stdin through either TypeScript SDK and prints what was heard.
//
// `connect(server, mode, answer)` gives { client, revision, announced, subscribe, callWith }: the connected client, the
// revision it settled on, the list that fills with the URIs of updated resources, a function that
// subscribes to a URI and gives the function that ends the subscription, and one that calls a tool with
// the SDK's options. `answer(method, params)` answers the server's questions; without it the client cannot be asked.

import { text } from 'node:stream/consumers';

export async function run(connect) {
  const request = JSON.parse(await text(process.stdin));
  if (request.task === 'converse') {
    process.stdout.write(JSON.stringify(await converse(connect, request)));
    return;
  }
  const connection = await connect(request.server, request.mode);
  try {
    const heard = await TASKS[request.task](connection, request);
    process.stdout.write(JSON.stringify(heard));
  } finally {
    await connection.client.close();
  }
}

export const ASKABLE = { elicitation: {}, sampling: {}, roots: {} };
export const QUESTIONS = ['elicitation/create', 'sampling/createMessage', 'roots/list'];

// The transport that leads to the server, from the SDK's own classes.
export function wayTo({ transport, command, url, token }, transports) {
  const Transport = transports[transport];
  if (transport === 'stdio') return new Transport({ command: command[0], args: command.slice(1) });
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return new Transport(new URL(url), { requestInit: { headers } });
}

const TASKS = { play, watch, count, cancel };

async function play({ client, revision }, { calls, uri }) {
  const { tools } = await client.listTools();
  const replies = [];
  for (const each of calls) replies.push(await call(client, each));
  const { resources } = await client.listResources();
  const { contents } = await client.readResource({ uri });
  return { revision, tools, replies, resources, contents };
}

async function watch({ client, announced, subscribe }, { writes, uri, patience }) {
  const [before, during, after] = writes;
  const taken = () => announced.uris.splice(0);
  await call(client, before);
  await client.listTools();
  const heard = { before: taken() };
  const unsubscribe = await subscribe(uri);
  await call(client, during);
  await within(patience, announced.first);
  await client.listTools();
  heard.during = taken();
  await unsubscribe();
  await call(client, after);
  await client.listTools();
  heard.after = taken();
  return heard;
}

// What a call reports on its way, which it goes on when it hears that it was heard.
async function count({ client, callWith }, { steps }) {
  const heard = [];
  const answers = [];
  const onprogress = ({ progress, total, message }) => {
    heard.push([progress, total, message]);
    answers.push(call(client, { tool: 'go_on', arguments: {} }));
  };
  await callWith({ name: 'count', arguments: { steps } }, { onprogress });
  await Promise.all(answers);
  return { heard };
}

// A call that would never end is cancelled when it says that it has begun; the server is asked whether it noticed.
async function cancel({ client, callWith }) {
  const controller = new AbortController();
  const options = { signal: controller.signal, onprogress: () => controller.abort('no longer wanted') };
  const given = await callWith({ name: 'wait', arguments: {} }, options).then(
    () => 'an answer',
    () => 'up',
  );
  const noticed = await call(client, { tool: 'was_cancelled', arguments: {} });
  return { given, noticed: noticed.content[0].text };
}

// Several servers in turn: calls during which they ask, then a call whose progress is heard, and the same call again,
// cancelled when it reports that it has begun.
async function converse(connect, { mode, talks }) {
  const heard = [];
  for (const { server, calls, watched, answers } of talks) {
    const asked = [];
    const answer = (method, params) => {
      asked.push({ method, params });
      return answers[method];
    };
    const { client, callWith } = await connect(server, mode, answer);
    try {
      const replies = [];
      for (const each of calls) replies.push(await call(client, each));
      heard.push({ asked, replies, ...(watched ? await watchCall(callWith, watched) : {}) });
    } finally {
      await client.close();
    }
  }
  return { heard };
}

async function watchCall(callWith, { tool, arguments: args }) {
  const progress = [];
  await callWith({ name: tool, arguments: args }, { onprogress: (each) => progress.push(each.progress) });
  const controller = new AbortController();
  const options = { signal: controller.signal, onprogress: () => controller.abort('no longer wanted') };
  const given = await callWith({ name: tool, arguments: args }, options).then(
    () => 'an answer',
    () => 'up',
  );
  const after = await callWith({ name: 'history', arguments: {} }, {});
  return { progress, given, after };
}

function call(client, { tool, arguments: args }) {
  return client.callTool({ name: tool, arguments: args });
}

// The URIs announced so far, and a promise of the first of them.
export function announcements() {
  const announced = { uris: [] };
  announced.first = new Promise((resolve) => {
    announced.add = (uri) => {
      announced.uris.push(uri);
      resolve();
    };
  });
  return announced;
}

async function within(seconds, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing was announced within ${seconds} s`)), seconds * 1000);
  });
  try {
    await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
