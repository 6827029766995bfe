// An agent on the official JavaScript SDK: MODE is strict or compat. The task's text is the scenario.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';

const modules = createRequire(pathToFileURL(`${process.env.A2A_JS}/package.json`));
const load = (name) => import(pathToFileURL(modules.resolve(name)).href);
const { default: express } = await load('express');
const { AgentCard, Role, TaskState } = await load('@a2a-js/sdk');
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = await load('@a2a-js/sdk/server');
const { UserBuilder, agentCardHandler, jsonRpcHandler } = await load('@a2a-js/sdk/server/express');

const mode = process.argv[2];
const text = (value) => ({ content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: '' });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

class Agent {
  constructor() {
    this.cancelled = new Set();
    this.started = 0;
  }

  async execute(context, bus) {
    const { taskId, contextId } = context;
    let word = (context.userMessage.parts[0]?.content?.value ?? '').trim();
    const said = (value) => ({
      messageId: randomUUID(), role: Role.ROLE_AGENT, parts: [text(value)], contextId, taskId, extensions: [], referenceTaskIds: [], metadata: {},
    });
    const status = (state, value) =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state, message: value === undefined ? undefined : said(value), timestamp: new Date().toISOString() }, metadata: {} }));
    const artifact = (parts, append = false, lastChunk = true, artifactId = randomUUID()) =>
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact: { artifactId, name: '', description: '', parts, metadata: {}, extensions: [] }, append, lastChunk, metadata: {} }));
    if (word === 'message' && !context.task) {
      bus.publish(AgentEvent.message({ ...said('just a message'), taskId: '' }));
      bus.finished();
      return;
    }
    let answer = '';
    if (context.task?.status?.state === TaskState.TASK_STATE_INPUT_REQUIRED) [word, answer] = ['answered', word];
    else if (context.task) word = 'signed';
    bus.publish(
      AgentEvent.task(
        context.task ?? { id: taskId, contextId, status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: new Date().toISOString() }, history: [context.userMessage], artifacts: [], metadata: {} },
      ),
    );
    status(TaskState.TASK_STATE_WORKING);
    const done = () => status(TaskState.TASK_STATE_COMPLETED);
    switch (word) {
      case 'instant':
        artifact([text('done at once')]);
        done();
        break;
      case 'slow':
        status(TaskState.TASK_STATE_WORKING, 'half done');
        await pause(200);
        artifact([text('slow and done')]);
        done();
        break;
      case 'failed':
        status(TaskState.TASK_STATE_FAILED, 'the printer is on fire');
        break;
      case 'canceled':
        status(TaskState.TASK_STATE_CANCELED, 'never mind');
        break;
      case 'rejected':
        status(TaskState.TASK_STATE_REJECTED, 'not for you');
        break;
      case 'input':
        status(TaskState.TASK_STATE_INPUT_REQUIRED, 'What is the dog called?');
        break;
      case 'answered':
        artifact([text(`dog=${answer}`)]);
        done();
        break;
      case 'auth':
        status(TaskState.TASK_STATE_AUTH_REQUIRED, 'Sign in first');
        break;
      case 'signed':
        artifact([text('signed in')]);
        done();
        break;
      case 'chunks': {
        let number = 0;
        for (const piece of ['one ', 'two ', 'three']) {
          artifact([text(piece)], number > 0, number === 2, 'story');
          number += 1;
          await pause(10);
        }
        done();
        break;
      }
      case 'data':
        artifact([
          text('five'),
          { content: { $case: 'data', value: { sum: 5 } }, metadata: undefined, filename: '', mediaType: '' },
          { content: { $case: 'raw', value: Buffer.from('a,b\n') }, metadata: undefined, filename: 'table.csv', mediaType: 'text/csv' },
        ]);
        done();
        break;
      case 'count':
        artifact([text(`${this.started} ${this.cancelled.size}`)]);
        done();
        break;
      case 'cancel':
        this.started += 1;
        while (!this.cancelled.has(taskId)) await pause(10);
        status(TaskState.TASK_STATE_CANCELED);
        break;
      default:
        status(TaskState.TASK_STATE_FAILED, 'no such scenario');
    }
    bus.finished();
  }

  async cancelTask(taskId) {
    this.cancelled.add(taskId);
  }
}

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const protocolVersion = mode === 'compat' ? '0.3' : '1.0';
  const card = AgentCard.fromJSON({
    name: 'Peer',
    description: 'A peer',
    version: '1',
    supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion }],
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'do', name: 'do', description: 'Does it', tags: ['do'] }],
  });
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Agent());
  const legacyCompat = { enabled: mode === 'compat' };
  const app = express();
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }));
  app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat }));
  server.on('request', app);
  console.log(url);
});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
