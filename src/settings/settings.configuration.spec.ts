import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Inject, Injectable } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { Test } from '@nestjs/testing';
import { InvalidSettingsError, settingsConfiguration, type Settings } from './index.js';

@Injectable()
class Reader {
  constructor(@Inject(settingsConfiguration.KEY) readonly settings: Settings) {}
}

const environment = process.env;

beforeEach(() => {
  const ours = /^(MMMQ_|SERVER_|PORT$)/;
  process.env = Object.fromEntries(Object.entries(environment).filter(([name]) => !ours.test(name)));
});

afterEach(() => {
  process.env = environment;
});

function testingModule() {
  const imports = [ConfigModule.forRoot({ load: [settingsConfiguration], ignoreEnvFile: true, cache: true })];
  return Test.createTestingModule({ imports, providers: [Reader] }).compile();
}

describe('the settings as a configuration of Nest', () => {
  it('are injected by their key, as the files and the environment say', async () => {
    process.env['SERVER_PORT'] = '9999';
    const module = await testingModule();
    expect(module.get(Reader).settings.server.port).toBe(9999);
    await module.close();
  });

  it('refuse the start where they are wrong', async () => {
    process.env['SERVER_PORT'] = 'http';
    await expect(testingModule()).rejects.toThrow(InvalidSettingsError);
  });
});
