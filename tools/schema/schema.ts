import { Command } from 'commander';
import { builtinPlugins } from '../../src/config/builtin-plugins.js';
import { configurationSchema, poolsSchema } from '../../src/config/json-schema.js';
import { parsedCommand } from '../command-line/parsed-command.js';

/** `pointsman schema`: the JSON Schema of configuration files on standard output, for editors and other checkers. */
export async function runSchema(argv: readonly string[]): Promise<void> {
  const command = new Command('pointsman schema')
    .description('Print the JSON Schema of EndpointPickerConfig, with the parameters of every plugin.')
    .option('--pools', 'the JSON Schema of pools files instead', false)
    .addHelpText(
      'after',
      '\nEditors with YAML support complete and check a file that begins with\n' +
        '  # yaml-language-server: $schema=<the printed file>\n',
    )
    .allowExcessArguments(false);
  const parsed = parsedCommand<{ readonly pools: boolean }>(command, argv);
  if (parsed === undefined) return;
  process.stdout.write(parsed.options.pools ? poolsSchemaText() : schemaText());
}

/** The schema as the file docs/endpoint-picker-config.schema.json has it. */
export function schemaText(): string {
  return `${JSON.stringify(configurationSchema(builtinPlugins), null, 2)}\n`;
}

/** The schema as the file docs/pools.schema.json has it. */
export function poolsSchemaText(): string {
  return `${JSON.stringify(poolsSchema(), null, 2)}\n`;
}
