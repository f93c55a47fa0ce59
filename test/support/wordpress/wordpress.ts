// A real WordPress of the test's own: Debian's package behind nginx and PHP-FPM, with a MariaDB that nobody else reaches. All of it lies in a temporary
// directory and ends with the test.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { startProxy } from "../proxy-program.ts";
import { tempDir } from "../temp-dir.ts";
import { until } from "../until.ts";

const packaged = "/usr/share/wordpress";
const here = import.meta.dirname;

/** The path of Debian's PHP-FPM, whose name has its version; undefined where there is none. */
function phpFpm(): string | undefined {
  const name = readdirSync("/usr/sbin").find((file) => /^php-fpm\d/.test(file));
  return name === undefined ? undefined : join("/usr/sbin", name);
}

/** What of a WordPress this host lacks; empty where one can be started. */
export const wordpressMissing: readonly string[] = [
  ...(existsSync(packaged) ? [] : ["wordpress"]),
  ...(existsSync("/usr/sbin/mariadbd") ? [] : ["mariadb-server"]),
  ...(existsSync("/usr/sbin/nginx") ? [] : ["nginx"]),
  ...(phpFpm() === undefined ? ["php-fpm"] : []),
];

export type WordPress = AsyncDisposable & {
  readonly port: number;
  readonly url: string;
  /** Of nginx, PHP-FPM and MariaDB. */
  readonly pids: readonly number[];
  /** Runs PHP within WordPress and returns what it prints. */
  php(code: string): string;
  /** The requests that have reached PHP: the lines of its access log. */
  phpRequests(): readonly string[];
  /** Installs a must-use plugin, and defines the constants that it needs. */
  addPlugin(file: string, constants?: Readonly<Record<string, string>>): void;
};

export type WordPressOptions = {
  readonly port: number;
  /** The address that visitors see, without a slash at its end. */
  readonly siteUrl: string;
};

export const admin = { name: "chief", password: "correct horse battery" } as const;

export async function startWordPress({ port, siteUrl }: WordPressOptions): Promise<WordPress> {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir()).path;
  chmodSync(dir, 0o755);
  const site = join(dir, "site");
  cpSync(packaged, site, { recursive: true, dereference: true });
  const database = await startDatabase(dir, stack);
  writeFileSync(join(site, "wp-config.php"), config(siteUrl, database.socket));
  const plugins = join(site, "wp-content/mu-plugins");
  mkdirSync(plugins);
  mkdirSync(join(site, "wp-content/uploads"), { mode: 0o777 });
  const socket = join(dir, "php.sock");
  const accessLog = join(dir, "php-access.log");
  const run = (path: string): string =>
    execFileSync("php", ["-d", "sendmail_path=/bin/true", path], {
      encoding: "utf8",
      env: { ...process.env, HTTP_HOST: new URL(siteUrl).host },
    });
  run(writePhp(dir, installation(site, siteUrl)));
  const pool = await startPool(dir, socket, accessLog, stack);
  const template = readFileSync(join(here, "nginx.conf"), "utf8");
  const front = stack.use(
    await startProxy(
      [port],
      (own) => filled(template, { dir: own, site, socket, port: String(port) }),
      (own, path) => ["/usr/sbin/nginx", "-p", own, "-c", path, "-e", join(own, "error.log")],
    ),
  );
  const owned = stack.move();
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    pids: [database.pid, pool, front.pid],
    php: (code) => run(writePhp(dir, `<?php require '${site}/wp-load.php';\n${code}\n`)),
    phpRequests: () =>
      existsSync(accessLog) ? readFileSync(accessLog, "utf8").split("\n").filter(Boolean) : [],
    addPlugin(file, constants = {}) {
      const defined = Object.entries(constants).map(
        ([name, value]) => `define('${name}', ${JSON.stringify(value)});\n`,
      );
      writeFileSync(join(plugins, "0-constants.php"), `<?php\n${defined.join("")}`);
      copyFileSync(file, join(plugins, file.slice(file.lastIndexOf("/") + 1)));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Prints every cookie that reached PHP into each page: whoever finds another's in his page has found a leak. */
export const canaryPlugin = join(here, "canary.php");

function filled(template: string, values: Readonly<Record<string, string>>): string {
  return template.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`nothing is known as ${name}`);
    return value;
  });
}

function writePhp(dir: string, code: string): string {
  const path = join(dir, "run.php");
  writeFileSync(path, code);
  return path;
}

function config(siteUrl: string, socket: string): string {
  const keys = ["AUTH", "SECURE_AUTH", "LOGGED_IN", "NONCE"].flatMap((name) => [
    `define('${name}_KEY', 'a fixed key of the test, ${name}');`,
    `define('${name}_SALT', 'a fixed salt of the test, ${name}');`,
  ]);
  return [
    "<?php",
    "define('DB_NAME', 'wordpress');",
    "define('DB_USER', 'root');",
    "define('DB_PASSWORD', '');",
    `define('DB_HOST', 'localhost:${socket}');`,
    "define('DB_CHARSET', 'utf8mb4');",
    "define('DB_COLLATE', '');",
    ...keys,
    `define('WP_HOME', '${siteUrl}');`,
    `define('WP_SITEURL', '${siteUrl}');`,
    "define('WP_HTTP_BLOCK_EXTERNAL', true);",
    "define('WP_ACCESSIBLE_HOSTS', '127.0.0.1,localhost');",
    "define('AUTOMATIC_UPDATER_DISABLED', true);",
    "define('DISABLE_WP_CRON', true);",
    "$table_prefix = 'wp_';",
    "if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');",
    "require_once ABSPATH . 'wp-settings.php';",
    "",
  ].join("\n");
}

/** Users, pages and posts; comments are open and seen at once. */
function installation(site: string, siteUrl: string): string {
  return `<?php
define('WP_INSTALLING', true);
require '${site}/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
wp_install('A site behind an edge', '${admin.name}', 'chief@example.com', true, '', '${admin.password}');
update_option('permalink_structure', '/%postname%/');
update_option('comment_moderation', '0');
update_option('comment_previously_approved', '0');
update_option('show_comments_cookies_opt_in', '1');
update_option('home', '${siteUrl}');
for ($no = 1; $no <= 30; $no++)
  wp_insert_post(['post_title' => "Post $no", 'post_name' => "post-$no", 'post_status' => 'publish',
    'post_author' => 1, 'post_content' => str_repeat("<p>Paragraph of post $no with some words in it.</p>\\n", 20)]);
foreach (['editor', 'author'] as $role)
  wp_insert_user(['user_login' => "the-$role", 'user_pass' => 'correct horse battery', 'role' => $role,
    'display_name' => "Canary-of-the-$role", 'user_email' => "$role@example.com"]);
flush_rewrite_rules();
`;
}

async function startDatabase(
  dir: string,
  stack: AsyncDisposableStack,
): Promise<{ readonly pid: number; readonly socket: string }> {
  const data = join(dir, "mariadb");
  const socket = join(data, "mariadb.sock");
  mkdirSync(data, { mode: 0o755 });
  const isRoot = process.getuid?.() === 0;
  if (isRoot) chownSync(data, idOf("mysql", "-u"), idOf("mysql", "-g"));
  const user = isRoot ? ["--user=mysql"] : [];
  execFileSync(
    "mariadb-install-db",
    [
      "--no-defaults",
      `--datadir=${data}`,
      ...user,
      "--auth-root-authentication-method=normal",
      "--skip-test-db",
    ],
    { stdio: "pipe" },
  );
  const server = spawn(
    "/usr/sbin/mariadbd",
    [
      "--no-defaults",
      `--datadir=${data}`,
      `--socket=${socket}`,
      "--skip-networking",
      "--innodb-flush-log-at-trx-commit=0",
      "--innodb-buffer-pool-size=64M",
      ...user,
    ],
    { stdio: "ignore" },
  );
  stack.defer(() => end(server, "SIGTERM"));
  await until("MariaDB answers", () => {
    try {
      execFileSync(
        "mariadb",
        ["--no-defaults", `--socket=${socket}`, "-uroot", "-e", "CREATE DATABASE wordpress"],
        { stdio: "pipe" },
      );
      return true;
    } catch {
      return false;
    }
  });
  return { pid: server.pid ?? 0, socket };
}

async function startPool(
  dir: string,
  socket: string,
  accessLog: string,
  stack: AsyncDisposableStack,
): Promise<number> {
  const path = join(dir, "php-fpm.conf");
  const owner = process.getuid?.() === 0 ? ["user = www-data", "group = www-data"] : [];
  writeFileSync(
    path,
    [
      "[global]",
      `error_log = ${join(dir, "php-fpm.log")}`,
      "daemonize = no",
      "[www]",
      ...owner,
      `listen = ${socket}`,
      "listen.mode = 0666",
      "pm = static",
      "pm.max_children = 4",
      `access.log = ${accessLog}`,
      'access.format = "%m %r%Q%q %s"',
      "php_admin_value[opcache.enable] = 1",
      "php_admin_value[sendmail_path] = /bin/true",
      "",
    ].join("\n"),
  );
  const program = phpFpm();
  if (program === undefined) throw new Error("php-fpm is not installed");
  const server = spawn(program, ["--nodaemonize", "--fpm-config", path], { stdio: "ignore" });
  stack.defer(() => end(server, "SIGTERM"));
  await until("PHP-FPM listens", () => existsSync(socket));
  return server.pid ?? 0;
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill(signal);
  const late = setTimeout(() => child.kill("SIGKILL"), 15_000);
  await ended;
  clearTimeout(late);
}

function idOf(user: string, which: "-u" | "-g"): number {
  return Number(execFileSync("id", [which, user], { encoding: "utf8" }));
}
