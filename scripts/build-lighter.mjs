// What of two dependencies and of `node:http` goes into `dist/`: the parts that are used. Each thread that imports them would otherwise keep them in memory whole.

/** What our sources import from undici, and the module that has it. */
const undiciModules = {
  Agent: "undici/lib/dispatcher/agent.js",
  Client: "undici/lib/dispatcher/client.js",
  Pool: "undici/lib/dispatcher/pool.js",
  ProxyAgent: "undici/lib/dispatcher/proxy-agent.js",
  buildConnector: "undici/lib/core/connect.js",
};
/** These need the whole package: commands that ask and end. */
const undiciWhole = ["FormData", "request"];

const virtual = "\0undici:";

/**
 * undici is one CommonJS module that loads all it has: caches, mocks, fetch, WebSocket. A file of ours that imports only names of the table above is given those
 * modules, with the methods that undici itself adds to them.
 */
export const usedUndici = {
  name: "used-undici",
  transform: {
    filter: { id: /\/src\/.*\.ts$/, code: '"undici"' },
    handler(code) {
      const imported = /^import \{([^}]+)\} from "undici";$/m.exec(code);
      if (imported === null) return undefined;
      const names = imported[1]
        .split(",")
        .map((name) => name.trim())
        .filter((name) => name !== "" && !name.startsWith("type "));
      if (names.length === 0 || names.some((name) => undiciWhole.includes(name))) return undefined;
      const unknown = names.find((name) => !Object.hasOwn(undiciModules, name));
      if (unknown !== undefined) throw new Error(`scripts/build-lighter.mjs lacks ${unknown}`);
      const lines = names.map((name) => `import ${name} from "${virtual.slice(1)}${name}";`);
      return { code: code.replace(imported[0], lines.join(" ")), map: null };
    },
  },
  resolveId: {
    filter: { id: /^undici:/ },
    handler: (id) => `\0${id}`,
  },
  load: {
    filter: { id: /^\0undici:/ },
    handler(id) {
      const name = id.slice(virtual.length);
      if (name === "buildConnector") return `export { default } from "${undiciModules[name]}";`;
      return `import it from "${undiciModules[name]}";
import Dispatcher from "undici/lib/dispatcher/dispatcher.js";
import api from "undici/lib/api/index.js";
Object.assign(Dispatcher.prototype, api);
export default it;`;
    },
  },
};

/** Of each known crawler, what `src/agent/bots/unreviewed/crawlers.ts` reads; its agents are two thirds of the list. */
export const smallCrawlers = {
  name: "small-crawlers",
  transform: {
    filter: { id: /crawler-user-agents\.json$/ },
    handler: (text) => ({
      code: JSON.stringify(
        JSON.parse(text).map(({ pattern, description, tags }) => ({ pattern, description, tags })),
      ),
      map: null,
      moduleType: "json",
    }),
  },
};

const httpImport = /^import (?:(\w+), )?\{([^}]+)\} from "node:http";$/gm;

/**
 * Returns the text of a file of `dist/` with `node:http` taken as `require` takes it. An import reads all that it exports, for whoever may ask, and one of these is a getter
 * that loads Node's own undici: 30 ms of processor time at the start of each thread.
 */
export function withPlainHttp(text) {
  const plain = text.replaceAll(httpImport, (_, whole, names) => {
    const picked = `{${names.replaceAll(" as ", ": ")}}`;
    const module = 'process.getBuiltinModule("node:http")';
    return whole === undefined
      ? `const ${picked} = ${module};`
      : `const ${whole} = ${module}, ${picked} = ${whole};`;
  });
  if (/^(?:import|export)\b.*"(?:node:)?http";?$/m.test(plain))
    throw new Error("node:http is imported in a way that scripts/build-lighter.mjs does not know");
  return plain;
}
