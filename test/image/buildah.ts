import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
/** Root file system of Debian. */
const DEBIAN = join(root, '.tools/image/debian.tar');
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Why the tests of the image are skipped; the empty string when they run. With POINTSMAN_REQUIRE_IMAGE=1 they never
 * are.
 */
export const imageSkipReason = process.env.POINTSMAN_REQUIRE_IMAGE === '1' ? '' : missing();

function missing(): string {
  const absent = ['buildah', 'unshare'].filter((name) => spawnSync(name, ['--version']).error !== undefined);
  if (!existsSync(DEBIAN)) absent.push('.tools/image/debian.tar');
  if (absent.length > 0) return ` (skipped: no ${absent.join(' and ')}; run scripts/install-buildah.sh)`;
  const mounts = spawnSync('unshare', ['--mount', 'true']).status === 0;
  return mounts ? '' : ' (skipped: this system lets the user make no mounts, which an image is run by)';
}

/** How layers are kept: as mounts over each other, or as whole copies where such mounts are not allowed. */
const DRIVERS = ['overlay', 'vfs'];

/** A storage of images of its own, so that nothing of the machine's is seen or left behind. */
export class ImageStore {
  readonly #env: NodeJS.ProcessEnv;

  private constructor(configuration: string) {
    this.#env = { ...process.env, BUILDAH_ISOLATION: 'chroot', CONTAINERS_STORAGE_CONF: configuration };
    delete this.#env.STORAGE_DRIVER;
  }

  /** @param folder holds the images; removed by the caller after `close` */
  static async open(folder: string): Promise<ImageStore> {
    const problems: string[] = [];
    for (const driver of DRIVERS) {
      const configuration = join(folder, `${driver}.conf`);
      const storage = { graphroot: join(folder, driver, 'images'), runroot: join(folder, driver, 'run') };
      const lines = Object.entries({ driver, ...storage }).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`);
      await writeFile(configuration, `[storage]\n${lines.join('')}`);
      const store = new ImageStore(configuration);
      try {
        const container = await store.buildah('from', 'scratch');
        await store.buildah('mount', container);
        await store.buildah('rm', container);
        return store;
      } catch (error) {
        problems.push(`${driver}: ${(error as Error).message}`);
      }
    }
    throw new Error(problems.join('; '));
  }

  /** Unmounts and removes every container. */
  async close(): Promise<void> {
    await this.buildah('rm', '--all');
  }

  async buildah(...args: readonly string[]): Promise<string> {
    const { stdout, stderr } = await run('buildah', args, { cwd: root, env: this.#env, maxBuffer: OUTPUT_BYTES_MAX });
    return stdout.trim() || stderr.trim();
  }

  /**
   * An image in the place of Node.js's own: Debian's packages, with the Node.js of the project and the npm of this
   * machine. npm inside takes the registry, the certificates and the cache from outside.
   */
  async base(name: string): Promise<void> {
    const container = await this.buildah('from', 'scratch');
    const npm = join((await run('npm', ['root', '-g'])).stdout.trim(), 'npm');
    const registry = (await run('npm', ['config', 'get', 'registry'])).stdout.trim();
    await this.buildah('add', '-q', container, DEBIAN, '/');
    await this.buildah('add', '-q', container, process.execPath, '/usr/local/bin/node');
    await this.buildah('add', '-q', container, npm, '/usr/local/lib/node_modules/npm');
    const links = 'ln -sf ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm';
    await this.buildah('run', container, '--', 'sh', '-c', links);
    const authorities = process.env.NODE_EXTRA_CA_CERTS;
    if (authorities !== undefined) {
      await this.buildah('add', '-q', container, authorities, '/etc/ssl/certs/ca-certificates.crt');
      await this.buildah('config', '--env', 'NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt', container);
    }
    await this.buildah('config', '--env', `npm_config_registry=${registry}`, container);
    await this.buildah('commit', '-q', '--rm', container, name);
  }

  async settings(image: string): Promise<ImageSettings> {
    const { OCIv1 } = JSON.parse(await this.buildah('inspect', '--type', 'image', image)) as {
      readonly OCIv1: { readonly config: ImageSettings };
    };
    return OCIv1.config;
  }

  /** Builds the Dockerfile of the project, unchanged. */
  async build(name: string, ...args: readonly string[]): Promise<void> {
    const cache = (await run('npm', ['config', 'get', 'cache'])).stdout.trim();
    await mkdir(cache, { recursive: true });
    const volume = ['--volume', `${cache}:/root/.npm`];
    await this.buildah(
      'bud',
      '--format',
      'docker',
      '--pull-never',
      '--network',
      'host',
      ...volume,
      ...args,
      '-t',
      name,
      root,
    );
  }
}

/** What the settings of an image say. */
export interface ImageSettings {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly WorkingDir: string;
  readonly ExposedPorts: Readonly<Record<string, unknown>>;
  readonly Labels: Readonly<Record<string, string>>;
}

/**
 * Command line that runs a program in a mounted image as a container would: its own root, mounted read-only, as the
 * image's user, with nothing but the image's environment.
 */
export function inContainer(
  mount: string,
  { User, Env, WorkingDir }: ImageSettings,
  command: readonly string[],
): string[] {
  const script = [
    'set -e; root=$1; user=$2; folder=$3; shift 3',
    'mount --bind "$root" "$root"',
    'mount -o remount,bind,ro "$root"',
    'mount --bind /proc "$root/proc"',
    'mount --bind /dev "$root/dev"',
    'exec chroot --userspec="$user" "$root" /usr/bin/env -i -C "$folder" "$@"',
  ].join('\n');
  return ['--mount', 'sh', '-c', script, 'sh', mount, User, WorkingDir, ...Env, ...command];
}
