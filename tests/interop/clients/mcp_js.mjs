// The TypeScript SDK as a client: MAJOR 1 or 2, then an era, then a URL and a token or a command line. What came is printed as JSON.
import { createRequire } from 'node:module';

const [major, era, url, token, ...command] = process.argv.slice(2);
const load = createRequire(`${process.env.MCP_JS}/package.json`);
const sdk = name => (major === '1' ? load(`@modelcontextprotocol/sdk/${name}`) : load('@modelcontextprotocol/client'));
const { Client } = sdk('client/index.js');
const { StreamableHTTPClientTransport } = sdk('client/streamableHttp.js');
const { StdioClientTransport } =
    major === '1' ? load('@modelcontextprotocol/sdk/client/stdio.js') : load('@modelcontextprotocol/client/stdio');
const named = major === '1' ? load('@modelcontextprotocol/sdk/types.js') : null;
const method = (schema, name) => (named ? named[schema] : name);

const options = { capabilities: { elicitation: {} } };
if (major !== '1') options.versionNegotiation = { mode: era };
const client = new Client({ name: 'interop', version: '1' }, options);
const asked = [];
client.setRequestHandler(method('ElicitRequestSchema', 'elicitation/create'), async ({ params }) => {
    asked.push(params.message);
    return { action: 'accept', content: { amount: 2 } };
});
const transport = command.length
    ? new StdioClientTransport({ command: command[0], args: command.slice(1), env: process.env })
    : new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
await client.connect(transport);

const call = (name, args, more) => client.callTool({ name, arguments: args }, ...(named ? [undefined, more] : [more]));
const text = result => result.content[0].text;
const failed = async work => {
    try {
        await work;
        return null;
    } catch (error) {
        return error.code;
    }
};
const steps = [];
const add = await call('add', { a: 2, b: 3 });
const found = {
    version: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null,
    tools: (await client.listTools()).tools.map(tool => tool.name),
    add: [text(add), add.structuredContent],
    wrong: (await call('add', { a: 'two', b: 3 })).isError,
    unknown: await failed(call('nothing', {})),
    narrate: text(await call('narrate', {}, { onprogress: step => steps.push([step.progress, step.total]) })),
    steps,
    resource: (await client.readResource({ uri: 'test://text' })).contents[0].text,
    order: text(await call('order', { item: 'tea' })),
    asked,
    echo: text(await call('echo', { value: 'a\u2028b 😀' })),
};
await client.close();
console.log(JSON.stringify(found));
process.exit(0);
