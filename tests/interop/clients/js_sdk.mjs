// The official JavaScript SDK as a client: URL TOKEN BINDING VERSION; prints what each scenario gave as JSON.
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const modules = createRequire(pathToFileURL(`${process.env.A2A_JS}/package.json`));
const load = (name) => import(pathToFileURL(modules.resolve(name)).href);
const { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } = await load('@a2a-js/sdk/client');
const { AgentCard, Role, TaskState } = await load('@a2a-js/sdk');

const [url, token, binding, version] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
const fetchImpl = (input, init = {}) => fetch(input, { ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), ...headers } });

const document = await (await fetch(`${url}/.well-known/agent-card.json`)).json();
document.supportedInterfaces = document.supportedInterfaces.filter(
  (one) => one.protocolBinding === binding && one.protocolVersion === version,
);
const card = AgentCard.fromJSON(document);
const legacyCompat = { enabled: version !== '1.0' };
const factory = new ClientFactory({
  transports: [new JsonRpcTransportFactory({ fetchImpl, legacyCompat }), new RestTransportFactory({ fetchImpl, legacyCompat })],
  preferredTransports: [binding],
});
const client = await factory.createFromAgentCard(card);

const text = (value) => ({ content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: '' });
const data = (value) => ({ content: { $case: 'data', value }, metadata: undefined, filename: '', mediaType: '' });
const call = (tool, args = {}) => data({ tool, arguments: args });
const request = (part, more = {}, configuration = undefined) => ({
  tenant: '',
  message: { messageId: randomUUID(), role: Role.ROLE_USER, parts: [part], contextId: '', taskId: '', extensions: [], referenceTaskIds: [], metadata: {}, ...more },
  configuration,
  metadata: {},
});
const later = { acceptedOutputModes: [], returnImmediately: true, historyLength: undefined, taskPushNotificationConfig: undefined };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const NAMES = Object.fromEntries(Object.entries(TaskState).map(([name, number]) => [number, name]));
const stateName = (state) => NAMES[state].replace('TASK_STATE_', '').toLowerCase().replace('_', '-');
function read(parts, into) {
  for (const part of parts) {
    const content = part.content;
    if (content?.$case === 'text') into.text += content.value;
    else if (content?.$case === 'data') into.data = content.value;
    else if (content?.$case === 'raw') into.files.push([part.filename, part.mediaType, Buffer.from(content.value).toString()]);
  }
}
function shown(task) {
  const result = { state: stateName(task.status.state), text: '', data: null, files: [], said: '', id: task.id };
  for (const artifact of task.artifacts ?? []) read(artifact.parts, result);
  const said = { text: '', data: null, files: [] };
  read(task.status.message?.parts ?? [], said);
  result.said = said.text;
  return result;
}
const getTask = (id) => client.getTask({ tenant: '', id, historyLength: undefined });
async function run(part, more = {}) {
  const kinds = [];
  let id = '';
  for await (const event of client.sendMessageStream(request(part, more))) {
    const payload = event.payload ?? event;
    kinds.push(payload.$case);
    id = payload.value?.taskId || payload.value?.id || id;
  }
  return { ...shown(await getTask(id)), kinds };
}
async function until(id) {
  for (;;) {
    const task = await getTask(id);
    if (![TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING].includes(task.status.state)) return shown(task);
    await pause(20);
  }
}
const start = async (part) => (await client.sendMessage(request(part, {}, later))).id;

const scenarios = {
  instant: () => run(call('add', { a: 2, b: 3 })),
  text: () => run(text('hello')),
  not_streamed: async () => shown(await client.sendMessage(request(text('hello')))),
  slow: () => run(call('slow')),
  polling: async () => until(await start(call('slow'))),
  failed: () => run(call('fails')),
  rejected: () => run(call('open_vault')),
  input_required: async () => {
    const asked = await run(call('name_it'));
    return { asked, ...(await run(data({ name: 'Rex' }), { taskId: asked.id })) };
  },
  auth_required: async () => {
    const asked = await run(call('approve_it'));
    return { asked, ...(await run(text('yes'), { taskId: asked.id })) };
  },
  chunks: () => run(call('chunks')),
  files: () => run(call('files')),
  cancel: async () => {
    const id = await start(call('sleep'));
    const cancelled = shown(await client.cancelTask({ tenant: '', id, metadata: {} }));
    return { ...cancelled, after: await until(id) };
  },
  subscribe: async () => {
    const id = await start(call('slow'));
    for await (const event of client.resubscribeTask({ tenant: '', id })) void event;
    return until(id);
  },
  unknown: async () => {
    try {
      await getTask('nope');
    } catch (error) {
      return { error: `${error.name} ${error.message}` };
    }
    return {};
  },
};
if (version === '1.0') {
  scenarios.listed = async () => ({ count: (await client.listTasks({ tenant: '', contextId: '', status: 0, pageSize: 3, pageToken: '' })).tasks.length });
}

const results = { card: { name: card.name, skills: card.skills.map((skill) => skill.id) } };
for (const [name, scenario] of Object.entries(scenarios)) {
  try {
    results[name] = await Promise.race([
      scenario(),
      pause(8000).then(() => {
        throw new Error('timed out');
      }),
    ]);
  } catch (error) {
    results[name] = { broke: `${error.name}: ${error.message}` };
  }
}
console.log(JSON.stringify(results));
process.exit(0);
