import { IsBoolean, IsNotEmpty, IsOptional, IsString } from 'class-validator';

/** What a customer sends: `{"item":"tea","email":"ann@example.com","express":true}`. */
export class NewOrder {
  @IsString()
  @IsNotEmpty()
  readonly item!: string;

  /** Customers who order by telephone have none. */
  @IsString()
  @IsOptional()
  readonly email?: string;

  @IsBoolean()
  @IsOptional()
  readonly express?: boolean;
}
